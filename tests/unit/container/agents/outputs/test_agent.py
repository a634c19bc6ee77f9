from __future__ import annotations

import os
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from estimator_container.agents.outputs.agent import OutputAgent
from estimator_container.agents.outputs.settings import OutputSettings
from estimator_container.agents.watching.folder import WatchedFolder
from estimator_container.logs.frames import MAX_PAYLOAD
from estimator_container.runtime.folder_hold import FolderHold
from estimator_container.runtime.wire import Unpacker, pack
from estimator_container.storage import SourceChanged

from tests.waiting import SECONDS


def test_a_folder_that_cannot_be_watched_goes_up_in_the_end(tmp_path, monkeypatch):
    """As one with a path that is too long: the kernel's answer ended the agent, and with it the job."""
    source, store = tmp_path / "intermediate", tmp_path / "store"
    source.mkdir()
    (source / "file").write_text("x")
    deep = os.open(source, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=deep)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    looks, state = [], WatchedFolder.state
    monkeypatch.setattr(WatchedFolder, "state", lambda *arguments: (looks.append(1), state(*arguments))[1])
    owner, own = socket.socketpair()
    with owner:
        agent = OutputAgent(own)
        settings = OutputSettings(f"file://{store}", folders={"intermediate/": str(source)})
        owner.sendall(pack(("settings", settings.to_json())))
        agent._loop.run_until(lambda: bool(looks))
        owner.sendall(pack(("finish", "")))
        agent._loop.run_until(lambda: agent._is_over)
        ((kind, reason, left_out),) = Unpacker().feed(owner.recv(1 << 16))
    assert (kind, reason) == ("finished", "") and left_out.endswith("dd'… is too long for a path")
    assert (store / "intermediate" / "file").read_text() == "x"


@pytest.mark.parametrize("has_next", [True, False], ids=["another job's folder", "no folder"])
def test_nothing_goes_up_where_the_owners_folder_was_gone_before_the_agent_opened_it(tmp_path, has_next):
    job, store = tmp_path / "job", tmp_path / "store"
    job.mkdir()
    held = FolderHold(str(job))
    job.rename(tmp_path / "removed")
    if has_next:
        job.mkdir()
        (job / "model.tar.gz").write_text("of the next job")
    owner, own = socket.socketpair()
    with owner:
        agent = OutputAgent(own)
        files = {"model.tar.gz": str(job / "model.tar.gz")}
        settings = OutputSettings(f"file://{store}", files, {"": str(job)}, held=held.identity)
        owner.sendall(pack(("settings", settings.to_json())) + pack(("finish", "")))
        agent._loop.run_until(lambda: agent._is_over, SECONDS)
        ((kind, reason, _),) = Unpacker().feed(owner.recv(1 << 16))
    assert (kind, "was removed or replaced" in reason) == ("finished", True), reason
    assert not store.exists()


class HeldUp(OutputAgent):
    """Its first upload waits until it may go on."""

    def __init__(self, owner: socket.socket) -> None:
        super().__init__(owner)
        self.may_go_on = threading.Event()
        self.uploads: list[list[str]] = []
        self.looked_while_busy = False

    def _look(self):
        self.looked_while_busy |= self.is_busy
        super()._look()

    def _upload(self, items, found):
        self.uploads.append(sorted(items))
        assert self.may_go_on.wait(SECONDS)
        super()._upload(items, found)


def test_what_is_written_during_an_upload_goes_up_after_it_and_alone(tmp_path):
    source, store = tmp_path / "intermediate", tmp_path / "store"
    source.mkdir()
    (source / "first").write_text("1")
    owner, own = socket.socketpair()
    with owner:
        agent = HeldUp(own)
        owner.sendall(pack(("settings", OutputSettings(f"file://{store}", folders={"": str(source)}).to_json())))
        agent._loop.run_until(lambda: bool(agent.uploads), SECONDS)
        (source / "second").write_text("2")
        agent._loop.run_until(lambda: agent.looked_while_busy, SECONDS)
        agent.may_go_on.set()
        owner.sendall(pack(("finish", "")))
        agent._loop.run_until(lambda: agent._is_over, SECONDS)
    assert agent.uploads == [["first"], ["second"]]
    assert (store / "second").read_text() == "2"


@pytest.mark.parametrize("holds_still", [True, False])
def test_a_file_that_is_written_all_the_time_keeps_back_no_other(tmp_path, monkeypatch, holds_still):
    if not holds_still:
        monkeypatch.setattr(WatchedFolder, "state", lambda *_: None)
    source, store = tmp_path / "intermediate", tmp_path / "store"
    source.mkdir()
    owner, own = socket.socketpair()
    is_over = threading.Event()

    def write():
        while not is_over.wait(0.02):
            with (source / "log").open("a") as file:
                file.write("a line\n")

    writing = threading.Thread(target=write)
    with owner:
        agent = OutputAgent(own)
        settings = OutputSettings(f"file://{store}", folders={"intermediate/": str(source)})
        owner.sendall(pack(("settings", settings.to_json())))
        writing.start()
        try:
            agent._loop.run_until(lambda: bool(agent._folders), SECONDS)
            (source / "done").write_text("x")
            agent._loop.run_until(lambda: "done" in agent._known.get("intermediate/", {}), SECONDS)
        finally:
            is_over.set()
            writing.join()
        assert (store / "intermediate" / "done").read_text() == "x"
        owner.sendall(pack(("finish", "")))
        agent._loop.run_until(lambda: agent._is_over, SECONDS)
    assert (store / "intermediate" / "log").read_bytes() == (source / "log").read_bytes()


def test_no_event_is_larger_than_the_log_takes(monkeypatch):
    owner, own = socket.socketpair()
    with owner:
        agent = OutputAgent(own)
        told = []
        monkeypatch.setattr(agent, "_emit", told.append)
        monkeypatch.setattr(agent, "look_soon", lambda seconds: None)
        items = {f"{number:04}" + "é" * 2020: "" for number in range(1001)}
        agent._uploaded(items, {}, SimpleNamespace(result=lambda: None))
    assert [key for event in told for key in event.files] == sorted(items)
    assert all(len(event.to_json().encode()) < MAX_PAYLOAD for event in told)


def test_what_changes_as_it_goes_up_keeps_back_no_other_and_has_none_sent_again(tmp_path, monkeypatch):
    source, store = tmp_path / "intermediate", tmp_path / "store"
    source.mkdir()
    (source / "changes").write_text("0")
    (source / "done").write_text("x")
    sent, upload = [], OutputAgent._upload

    def changed(self, items, found):
        sent.append(sorted(items))
        if "intermediate/changes" in items and len(sent) < 6:
            (source / "changes").write_text("0" * len(sent))
            raise SourceChanged("it was changed")
        upload(self, items, found)

    monkeypatch.setattr(OutputAgent, "_upload", changed)
    owner, own = socket.socketpair()
    with owner:
        agent = OutputAgent(own)
        settings = OutputSettings(f"file://{store}", folders={"intermediate/": str(source)})
        owner.sendall(pack(("settings", settings.to_json())))
        agent._loop.run_until(lambda: "changes" in agent._known.get("intermediate/", {}), SECONDS)
    assert "changes" in agent._known["intermediate/"] and (store / "intermediate" / "done").read_text() == "x"
    assert sum("intermediate/done" in each for each in sent) == 2  # with the first that failed, and alone


def test_at_rest_are_files_that_nobody_writes_and_that_are_old_enough(tmp_path):
    (tmp_path / "done").write_text("x")
    with (tmp_path / "open").open("w") as file:
        file.write("half")
        file.flush()
        folder = WatchedFolder(str(tmp_path))
        time.sleep(0.2)
        assert set(folder.files_at_rest({}, 0.1)) == {"done"}
        assert folder.files_at_rest({}, 3600.0) == {}
    folder.close()
