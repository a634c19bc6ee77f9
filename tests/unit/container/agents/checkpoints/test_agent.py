"""The agent as a real process, and its owner's side of it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from estimator_container.agents.checkpoints.format import CLAIMS, DATA, Manifest
from estimator_container.agents.checkpoints.restore import newest_whole_manifest, restore, snapshots
from estimator_container.agents.checkpoints.settings import CheckpointSettings
from estimator_container.contract.event_decoding import KINDS
from estimator_container.logs.frames import EVENT, FrameParser
from estimator_container.runtime.folder_hold import FolderHold
from estimator_container.runtime.links import Link
from estimator_container.storage.location import unfinished_name

from tests.waiting import SECONDS, wait_until_stopped


class Running:
    """An agent that runs, and what it has said and told."""

    def __init__(self, loop, run_until, settings):
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-I", "-S", settings.script, str(theirs.fileno()), json.dumps(sys.path)]
        with theirs:
            self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
        self.settings = settings
        self.said = []
        self._loop, self._run_until = loop, run_until
        self.link = Link(loop, ours, lambda link, message: self.said.append(message), lambda link: None)
        self.link.send("settings", settings.to_json())

    def answer(self, kind):
        self.until(lambda: self.said)
        assert self.said[0][0] == kind, self.said
        return self.said.pop(0)[1:]

    def finish(self, seconds=SECONDS):
        self.link.send("finish", str(seconds))
        size, reason, self.newest = self.answer("finished")
        return [size, reason]

    def events(self, name):
        assert name in KINDS, f"nobody sends {name!r}"
        with open(self.settings.frames, "rb") as file:  # noqa: PTH123 - it may be there or not
            frames = FrameParser().feed(file.read())
        found = [json.loads(frame.data) for frame in frames if frame.stream == EVENT]
        return [event for event in found if event["event"] == name]

    def until(self, done):
        """Looks again and again, for what the agent does outside of its answers."""

        def look():
            if not over:
                self._loop.after(0.01, look)

        over = []
        look()
        self._run_until(done)
        over.append(True)

    def close(self):
        self.link.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def settings(store, tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    return CheckpointSettings(
        store.uri, str(folder), (), str(tmp_path / "alive"), str(tmp_path / "frames"), "job", True
    )


@pytest.fixture
def start(loop, run_until, settings):
    running = []

    def new(**changes):
        running.append(Running(loop, run_until, replace(settings, **changes)))
        return running[-1]

    yield new
    for each in running:
        each.close()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoints"


def files(store, tmp_path):
    target = tmp_path / "restored"
    restore(store, str(target))
    return {path.name: path.read_text() for path in target.iterdir()}


def test_what_settles_is_published_and_the_end_is_told(start, store, folder, tmp_path):
    running = start()
    assert running.answer("restored") == ["nothing", "nothing", "0", "0", "1"]
    (folder / "model").write_text("1")
    running.until(lambda: running.events("checkpoint_published"))
    (folder / "model").write_text("2")
    assert running.finish() == ["0", ""]
    newest = newest_whole_manifest(store)
    assert newest is not None and running.newest == newest.content
    assert running.process.wait(SECONDS) == 0
    assert files(store, tmp_path) == {"model": "2"}


def test_a_folder_without_a_pause_is_looked_at_all_the_same(start, folder):
    """A file that is appended to, and closed, again and again must not put off every look."""
    running = start()
    running.answer("restored")
    (folder / "model").write_text("1")
    writes = iter(range(1_000_000))

    def published():
        if next(writes) % 4:  # there are pauses of more than the kernel's clock tick
            (folder / "log").write_text("x")
        return running.events("checkpoint_published")

    running.until(published)


def test_a_damaged_claim_is_no_obstacle(start, store):
    store.write(f"{CLAIMS}000001.json", b"damaged")
    assert start().answer("restored") == ["nothing", "nothing", "0", "0", "2"]


def test_a_restore_that_cannot_be_is_told_with_its_reason(start, store, folder):
    store.write(".estimator/snapshots/000001-00000001.json", b"damaged")
    running = start()
    (reason,) = running.answer("failed")
    assert "none is complete" in reason
    assert running.process.wait(SECONDS) == 0


def test_told_to_finish_before_it_has_begun_it_ends(start):
    running = start()
    running.link.send("finish", "20")
    running.until(lambda: running.said)
    assert running.process.wait(SECONDS) == 0


def test_told_to_finish_before_it_goes_on_for_another_it_publishes_what_that_one_has_left(start, store, folder):
    (folder / "model").write_text("1")
    running = start(restore=False)
    running.link.send("finish", "20")
    running.answer("restored")
    assert running.answer("finished")[:2] == ["0", ""]
    assert [file.path for file in newest_whole_manifest(store).files] == ["model"]


def test_when_the_owner_is_gone_it_publishes_and_ends(start, store, folder, tmp_path):
    running = start()
    running.answer("restored")
    (folder / "model").write_text("1")
    running.link.close()
    assert running.process.wait(SECONDS) == 0
    assert files(store, tmp_path) == {"model": "1"}


def test_a_file_that_is_open_again_for_good_is_named(start, folder):
    running = start(log_seconds=3600.0)
    running.answer("restored")
    (folder / "log").write_text("1")
    running.until(lambda: running.events("checkpoint_published"))
    with (folder / "log").open("a") as log:
        log.write("2")
        log.flush()
        (folder / "model").write_text("1")
        running.until(lambda: opened(running))  # a slow disk is told of, too
        assert opened(running)[0]["open"] == ["log"]
        size, reason = running.finish()
        assert (size, reason) == ("1", "these files are still open for writing: log")


def opened(running):
    """What it says of files that are open."""
    return [event for event in running.events("checkpoint_lag") if event["open"]]


def write_before_it_looks(running, folder):
    """A file is whole, then open again, and another one is written, before the agent has time to look."""
    running.answer("restored")
    running.process.send_signal(signal.SIGSTOP)
    (folder / "a").write_text("1")
    file = (folder / "a").open("w")
    file.write("2")
    file.flush()
    (folder / "b").write_text("2")
    running.process.send_signal(signal.SIGCONT)
    return file


def test_a_file_that_was_whole_before_the_first_snapshot_is_waited_for(start, store, folder, tmp_path):
    running = start(log_seconds=0.02)  # it is none
    with write_before_it_looks(running, folder):
        time.sleep(0.5)  # many looks
        assert running.events("checkpoint_published") == []
    running.until(lambda: running.events("checkpoint_published"))
    assert files(store, tmp_path) == {"a": "2", "b": "2"}


def test_what_another_agent_finds_open_is_waited_for(start, folder, store, tmp_path):
    """It may have been whole while the one before looked, which was killed."""
    first = start()
    first.answer("restored")
    first.process.kill()
    first.process.wait()
    (folder / "a").write_text("1")
    with (folder / "a").open("w") as file:
        file.write("2")
        file.flush()
        (folder / "b").write_text("2")
        running = start(restore=False)
        time.sleep(0.5)  # many looks
        assert running.events("checkpoint_published") == []
    running.until(lambda: running.events("checkpoint_published"))
    assert files(store, tmp_path) == {"a": "2", "b": "2"}


def test_but_not_for_good(start, store, folder, tmp_path):
    running = start(unkept_seconds=0.3)
    with write_before_it_looks(running, folder):
        running.until(lambda: running.events("checkpoint_published"))
        assert files(store, tmp_path) == {"b": "2"}


def test_a_log_that_is_open_for_good_holds_nothing_up(start, store, folder, tmp_path):
    running = start(log_seconds=0.1)
    running.answer("restored")
    (folder / "log").write_text("1\n")
    running.until(lambda: running.events("checkpoint_published"))
    with (folder / "log").open("a") as log:
        running.process.send_signal(signal.SIGSTOP)  # or the first might be published without the second
        wait_until_stopped(running.process.pid)
        log.write("2\n")
        log.flush()
        (folder / "model").write_text("1")
        running.process.send_signal(signal.SIGCONT)
        running.until(lambda: len(running.events("checkpoint_published")) == 2)
        assert files(store, tmp_path) == {"log": "1\n2\n", "model": "1"}
        (folder / "model").write_text("2")
        running.until(lambda: len(running.events("checkpoint_published")) == 3)
        log.write("3\n")
    assert running.finish() == ["0", ""]
    assert files(store, tmp_path) == {"log": "1\n2\n3\n", "model": "2"}


def test_a_file_that_is_rewritten_holds_everything_up_however_long_it_takes(start, store, folder):
    running = start(log_seconds=0.1)
    running.answer("restored")
    (folder / "data").write_text("11")
    running.until(lambda: running.events("checkpoint_published"))
    with (folder / "data").open("r+") as data:
        data.write("222")
        data.flush()
        (folder / "model").write_text("1")
        running.until(lambda: running.events("checkpoint_lag"))
        assert len(running.events("checkpoint_published")) == 1
        assert running.finish() == ["1", "these files are still open for writing: data"]
    assert [name.sequence for name in snapshots(store)] == [1]


def test_what_a_rank_wrote_to_its_log_before_it_died_is_kept(start, store, folder, tmp_path, program):
    running = start(log_seconds=0.1)
    running.answer("restored")
    (folder / "log").write_text("1\n")
    running.until(lambda: running.events("checkpoint_published"))
    (tmp_path / "alive").mkdir()
    alive, log = (tmp_path / "alive" / "0-first").open("w"), (folder / "log").open("a")
    with alive, log:
        fd = log.fileno()
        rank = program(pass_fds=(alive.fileno(), fd))
    rank.does(f"os.write({fd}, b'2\\n')")
    (folder / "model").write_text("1")
    running.until(lambda: len(running.events("checkpoint_published")) == 2)
    rank.does(f"os.write({fd}, b'3\\n')")
    rank.kill()
    (tmp_path / "draft").write_text("2")
    (tmp_path / "draft").rename(folder / "model")
    assert running.finish() == ["0", ""]
    assert files(store, tmp_path) == {"log": "1\n2\n3\n", "model": "2"}


def test_a_new_log_that_a_death_has_closed_takes_nothing_with_it(start, store, folder, tmp_path, program):
    running = start(unkept_seconds=0.0)
    running.answer("restored")
    (tmp_path / "alive").mkdir()
    alive, log = (tmp_path / "alive" / "0-first").open("w"), (folder / "log").open("w")
    with alive, log:
        fd = log.fileno()
        rank = program(pass_fds=(alive.fileno(), fd))
    (folder / "model").write_text("1")
    running.until(lambda: running.events("checkpoint_published"))
    (folder / "model").write_text("2")
    running.until(lambda: len(running.events("checkpoint_published")) == 2)
    rank.does(f"os.write({fd}, b'half')")
    rank.kill()
    (tmp_path / "draft").write_text("whole")
    (tmp_path / "draft").rename(folder / "model")
    assert running.finish() == ["4", "these files may be incomplete: log"]
    assert files(store, tmp_path) == {"model": "whole"}


def test_nothing_is_kept_without_a_file_that_was_whole_before_a_death_left_a_half_of_it(
    start, store, folder, tmp_path, program
):
    running = start(log_seconds=0.0)  # it is no log
    running.answer("restored")
    (tmp_path / "alive").mkdir()
    running.process.send_signal(signal.SIGSTOP)  # or the first snapshot would have it
    (folder / "data").write_text("1")
    alive, data = (tmp_path / "alive" / "0-first").open("w"), (folder / "data").open("w")
    with alive, data:
        fd = data.fileno()
        rank = program(pass_fds=(alive.fileno(), fd))
    running.process.send_signal(signal.SIGCONT)
    time.sleep(0.2)  # it is seen to be open
    rank.does(f"os.write({fd}, b'half')")
    rank.kill()
    (tmp_path / "draft").write_text("whole")
    (tmp_path / "draft").rename(folder / "model")
    assert running.finish() == ["9", "these files may be incomplete: data"]
    assert [*snapshots(store)] == []


def test_what_nobody_vouches_for_holds_back_all_that_is_new(start, store, folder, tmp_path):
    """Who knows what else is missing: an agent that has just begun has not heard what was moved into place before."""
    running = start()
    running.answer("restored")
    (tmp_path / "alive").mkdir()
    (tmp_path / "alive" / "0-first").touch()  # of a rank that is dead
    (folder / "half").write_text("half")
    (tmp_path / "draft").write_text("whole")
    (tmp_path / "draft").rename(folder / "model")
    assert running.finish() == ["9", "these files may be incomplete: half"]
    assert list(snapshots(store)) == []


def test_a_new_file_that_stays_open_is_named_at_the_end(start, folder):
    running = start()
    running.answer("restored")
    with (folder / "log").open("w"):
        assert running.finish() == ["0", "these files are still open for writing: log"]


def test_another_agent_goes_on_in_a_folder_that_is_in_use(start, store, folder):
    running = start()
    running.answer("restored")
    (folder / "model").write_text("1")
    running.until(lambda: running.events("checkpoint_published"))
    running.close()
    (folder / "other").write_text("22")
    running = start(restore=False)
    base, *_ = running.answer("restored")
    assert base == "000001-00000001"
    assert running.finish() == ["0", ""]
    assert running.events("checkpoint_published")[-1]["sent"] == 2
    newest = Manifest.from_bytes(store.read(next(iter(snapshots(store))).key))
    assert [file.path for file in newest.files] == ["model", "other"]


def test_an_overtaken_agent_says_so_and_ends(start, store, folder, tmp_path):
    stale = start()
    stale.answer("restored")
    (tmp_path / "newer").mkdir()
    newer = start(folder=str(tmp_path / "newer"), frames=str(tmp_path / "newer.frames"))
    newer.answer("restored")
    (folder / "model").write_text("stale")
    _, reason, _ = stale.answer("finished")
    assert "an attempt later than 1" in reason
    assert stale.process.wait(SECONDS) == 0
    assert newer.finish() == ["0", ""]
    assert list(snapshots(store)) == []


def test_what_nobody_vouches_for_is_not_published(start, store, folder, tmp_path):
    running = start()
    running.answer("restored")
    (tmp_path / "alive").mkdir()
    (tmp_path / "alive" / "0-first").touch()  # of a rank that is dead
    (folder / "half").write_text("half")
    assert running.finish() == ["4", "these files may be incomplete: half"]
    assert list(snapshots(store)) == []


def test_what_was_moved_into_place_is_published_whoever_has_died(start, store, folder, tmp_path):
    running = start()
    running.answer("restored")
    (tmp_path / "alive").mkdir()
    (tmp_path / "alive" / "0-first").touch()
    (tmp_path / "draft").write_text("whole")
    (tmp_path / "draft").rename(folder / "model")
    assert running.finish() == ["0", ""]
    assert files(store, tmp_path) == {"model": "whole"}


def test_what_came_between_two_looks_is_counted_from_then(start, folder):
    """A look that follows a publication may be the first to hear of a change."""
    running = start()
    running.answer("restored")
    begun = time.monotonic()
    for number in count():
        (folder / "model").write_text(str(number))
        time.sleep(0.0001 * (number % 300))
        published = running.events("checkpoint_published")
        if len(published) > 20 or time.monotonic() - begun > SECONDS:
            break
    assert len(published) > 20
    assert [event for event in published if event["seconds"] <= 0] == []


def test_names_are_bytes(start, store, folder, tmp_path):
    names = [os.fsdecode(name) for name in (b"\xff", b"a\nb", b"\x1b[2J", b".estimator-x", b"\xc3\xa9 +%#?")]
    running = start()
    running.answer("restored")
    for name in names:
        (folder / name).write_text(name, errors="surrogateescape")
    (folder / "link").symlink_to(names[0])
    assert running.finish() == ["0", ""]
    restore(store, str(tmp_path / "restored"))
    assert {path.name for path in (tmp_path / "restored").iterdir()} == {*names, "link"}
    assert (tmp_path / "restored" / "link").readlink() == Path(names[0])


def test_nothing_is_restored_into_the_folder_of_a_job_that_took_its_place_before_it_began(start, store, tmp_path):
    job = tmp_path / "job"
    folder = job / "checkpoints"
    folder.mkdir(parents=True)
    held = FolderHold(str(job))
    job.rename(tmp_path / "removed")
    folder.mkdir(parents=True)
    (folder / "model").write_text("of the next job")
    (reason,) = start(folder=str(folder), held=held.identity).answer("failed")
    assert "was removed or replaced" in reason
    assert [path.name for path in folder.iterdir()] == ["model"]
    assert list(snapshots(store)) == []


def test_what_an_attempt_that_was_killed_has_half_sent_is_gone_before_another_writes(start, tmp_path):
    """It may be what has filled the disk, and then no snapshot would ever clean up."""
    half = tmp_path / "store" / DATA / "000001" / unfinished_name()
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    os.utime(half, (0, 0))
    start().answer("restored")
    assert not half.exists()


def test_nothing_is_published_of_a_job_that_took_the_place_of_this_one(start, store, tmp_path):
    job = tmp_path / "job"
    folder = job / "checkpoints"
    folder.mkdir(parents=True)
    running = start(folder=str(folder), held=FolderHold(str(job)).identity)
    running.answer("restored")
    job.rename(tmp_path / "removed")
    folder.mkdir(parents=True)
    (folder / "model").write_text("of the next job")
    assert running.finish() == ["0", "the job's folder was removed"]
    assert list(snapshots(store)) == []
