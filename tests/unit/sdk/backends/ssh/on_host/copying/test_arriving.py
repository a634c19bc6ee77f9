"""What hosts on other machines write, as it arrives in the job's folder."""

import errno
import os
import signal

import pytest
from estimator_container.failures.kind import Kind
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.ssh.on_host import words
from estimator_sdk.backends.ssh.on_host.copying import arriving
from estimator_sdk.backends.ssh.on_host.copying.arriving import ArrivingFiles, end_of
from estimator_sdk.backends.ssh.on_host.copying.trees import piece
from estimator_sdk.values.home import JobFolder


class Allocation:
    """What it has told keepers, and why it has failed."""

    def __init__(self, folder):
        self.loop, self.said, self.failed, self.is_stopping = Loop(), [], [], False
        self.files = ArrivingFiles(self.loop, JobFolder(folder), self._tell, self._fail, lambda: not self.is_stopping)

    def _tell(self, *said):
        self.said.append(said)

    def _fail(self, host, error):
        self.failed.append((host, getattr(error, "errno", None)))


@pytest.fixture
def allocation(tmp_path, monkeypatch):
    monkeypatch.setattr(arriving, "AGAIN_SECONDS", 0.02)
    yield Allocation(tmp_path)
    signal.set_wakeup_fd(-1)


@pytest.fixture
def full(monkeypatch):
    """A disk that takes half of what is written first, and then nothing until it is emptied."""
    with monkeypatch.context() as disk:
        write, written = os.pwrite, []

        def pwrite(fd, data, offset):
            written.append(offset)
            if len(written) > 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(fd, data[: len(data) // 2], offset)

        disk.setattr(os, "pwrite", pwrite)
        yield disk


def test_what_a_full_disk_does_not_take_is_taken_when_there_is_room_and_what_comes_after_waits(
    allocation, full, tmp_path
):
    files, loop, did = allocation.files, allocation.loop, []
    for offset, data in ((0, b"one "), (4, b"two ")):
        files.take("algo-1", list(piece(words.FRAMES, offset, data)))
    files.then("algo-1", lambda: did.append("ended"))
    files.then("algo-2", lambda: did.append("another host"))
    loop.run_until(lambda: False, 0.2)
    assert (allocation.said, allocation.failed, did) == ([], [], ["another host"])
    full.undo()
    loop.run_until(lambda: len(did) > 1, 60)
    assert (allocation.said, did[1]) == ([("algo-1", words.TAKEN)] * 2, "ended")
    assert (tmp_path / "hosts" / "algo-1" / words.FRAMES).read_bytes() == b"one two "
    files.then("algo-1", lambda: did.append("at once"))
    assert did[2] == "at once"


def test_what_is_done_after_may_run_the_loop_itself(allocation, full):
    files, loop, did = allocation.files, allocation.loop, []
    files.take("algo-1", list(piece(words.FRAMES, 0, b"one ")))
    files.then("algo-1", lambda: loop.run_until(lambda: bool(did), 60) or did.append("outer"))
    files.then("algo-1", lambda: did.append("inner"))
    full.undo()
    loop.run_until(lambda: len(did) == 2, 60)
    assert did == ["inner", "outer"]


@pytest.mark.parametrize("why", ["it is full for too long", "the job is stopping"])
def test_a_host_fails_whose_files_find_no_room(allocation, full, monkeypatch, why):
    monkeypatch.setattr(arriving, "FULL_SECONDS", 0.1 if "long" in why else 600.0)
    allocation.files.take("algo-1", list(piece(words.FRAMES, 0, b"one ")))
    allocation.is_stopping = "stopping" in why
    allocation.loop.run_until(lambda: bool(allocation.failed), 60)
    assert (allocation.failed, allocation.said) == ([("algo-1", errno.ENOSPC)], [("algo-1", words.TAKEN)])


def test_of_a_host_that_is_lost_nothing_is_done_any_more(allocation, full):
    files, did = allocation.files, []
    files.take("algo-1", list(piece(words.FRAMES, 0, b"one ")))
    files.then("algo-1", lambda: did.append("ended"))
    files.forget("algo-1")
    full.undo()
    allocation.loop.run_until(lambda: False, 0.2)
    assert (did, allocation.said) == ([], [])


def test_what_is_wrong_with_an_item_is_told_at_once(allocation):
    allocation.files.take("algo-1", list(piece("../outside", 0, b"")))
    ((host, _),) = allocation.failed
    assert (host, allocation.said) == ("algo-1", [("algo-1", words.TAKEN)])


def test_a_log_goes_on_after_what_the_supervisor_has_written_there(allocation, tmp_path):
    log = tmp_path / "hosts" / "algo-1" / words.FRAMES
    log.parent.mkdir(parents=True)
    log.write_bytes(b"restored ")
    for offset, data in ((0, b"one "), (4, b"two ")):
        allocation.files.take("algo-1", list(piece(words.FRAMES, offset, data)))
    allocation.files.take("algo-2", list(piece(words.FRAMES, 0, b"other")))
    log.write_bytes(log.read_bytes() + b"failed ")
    allocation.files.take("algo-1", list(piece(words.FRAMES, 0, b"again")))
    assert log.read_bytes() == b"restored one two failed again"
    assert (tmp_path / "hosts" / "algo-2" / words.FRAMES).read_bytes() == b"other"


def test_a_host_that_has_left_what_cannot_be_read_has_not_done_well_and_says_what_that_is():
    assert end_of("algo-2", "0") == (0, None)
    code, found = end_of("algo-2", "0", "model/x: Permission denied")
    assert code != 0 and (found.kind, found.host) == (Kind.OUTPUTS, "algo-2")
    assert "model/x: Permission denied" in found.message
    assert end_of("algo-2", "7", "model/x: Permission denied") == (7, None)  # which has a reason of its own
