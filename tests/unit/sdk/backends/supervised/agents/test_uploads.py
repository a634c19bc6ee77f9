"""The supervisor's side of uploads: who sends files may be killed, or not be started, and the job goes on."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest
from estimator_container.agents.outputs.settings import OutputSettings
from estimator_container.runtime.children import Children
from estimator_container.runtime.folder_hold import FolderHold
from estimator_container.runtime.loop import Loop

from estimator_sdk import Estimator
from estimator_sdk.backends.supervised.agents import intermediate, uploads
from estimator_sdk.backends.supervised.agents.intermediate import Intermediate
from estimator_sdk.backends.supervised.agents.uploads import Upload
from estimator_sdk.values.home import JobFolder
from tests.waiting import SECONDS


@pytest.fixture
def loop():
    before = signal.getsignal(signal.SIGCHLD)
    yield Loop()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, before)


@pytest.fixture
def places(tmp_path):
    """Where files are written, and where they go."""
    (written := tmp_path / "written").mkdir()
    return written, tmp_path / "store"


def settings_of(places):
    return OutputSettings(f"file://{places[1]}", folders={"": str(places[0])})


def run_until_there(loop, path: Path) -> None:
    def look():
        found.append(path.exists())
        loop.after(0.02, look)

    found = []
    look()
    loop.run_until(lambda: found[-1], SECONDS)
    assert found[-1], f"{path} did not come"


def test_who_uploads_is_followed_by_another_when_it_is_killed(loop, places, monkeypatch):
    monkeypatch.setattr(uploads, "AGAIN_SECONDS", 0.05)
    written, store = places
    children = Children(loop)
    upload = Upload(loop, children, settings_of(places))
    (written / "a").write_text("1")
    run_until_there(loop, store / "a")
    (pid,) = children.pids
    os.kill(pid, signal.SIGKILL)
    (written / "b").write_text("2")
    run_until_there(loop, store / "b")
    (pid,) = children.pids
    os.kill(pid, signal.SIGKILL)
    (written / "c").write_text("3")
    assert (upload.finish(), upload.not_uploadable) == ("", "")
    assert (store / "c").read_text() == "3"


def test_one_that_always_ends_is_given_up(loop, places, monkeypatch):
    monkeypatch.setattr(uploads, "AGENTS", 3)
    children = Children(loop)
    monkeypatch.setattr("estimator_sdk.backends.supervised.agents.agent_process.bare", lambda *_: ["false"])
    assert Upload(loop, children, settings_of(places)).finish() == (
        "the process that uploads ended 3 times, the last time with 1"
    )


class OfAFullMachine(Children):
    """Cannot start anything while there is no room."""

    has_room = False
    tries = 0

    def start(self, *arguments, **options):
        self.tries += 1
        if not self.has_room:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return super().start(*arguments, **options)


@pytest.fixture
def job(loop, tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(intermediate, "AGAIN_SECONDS", 0.05)
    (tmp_path / "train.py").touch()
    plan = Estimator(entry_point=str(tmp_path / "train.py")).plan(job_name="digits")
    children, folder = OfAFullMachine(loop), JobFolder.for_job("digits")
    folder.path.mkdir(parents=True)
    held = FolderHold(str(folder.path)).identity
    made = Intermediate(plan, folder, f"file://{tmp_path / 'store'}", loop, children, held)
    made.start()
    ((_, written),) = made._folders.items()
    return made, children, Path(written), tmp_path / "store" / "intermediate"


def test_a_machine_without_room_for_one_more_process_ends_no_job(loop, job):
    made, children, written, store = job
    (written / "a").write_text("1")
    loop.run_until(lambda: children.tries > 2, SECONDS)
    children.has_room = True
    run_until_there(loop, store / "a")
    assert made.finish() == ("", "")


def test_at_the_end_it_is_said_that_nothing_can_be_sent(loop, job):
    made, _, written, _ = job
    (written / "a").write_text("1")
    assert made.finish() == ("no process that uploads can be started: Resource temporarily unavailable", "")
