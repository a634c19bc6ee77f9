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
        self.loop, self.said, self.failed = Loop(), [], []
        self.files = ArrivingFiles(self.loop, JobFolder(folder), self.tell, self._fail)

    def tell(self, *said):
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


def test_what_a_full_disk_does_not_take_is_taken_when_there_is_room(allocation, full, tmp_path):
    for offset, data in ((0, b"one "), (4, b"two ")):
        allocation.files.take("algo-1", list(piece(words.FRAMES, offset, data)))
    allocation.loop.run_until(lambda: False, 0.2)
    assert (allocation.said, allocation.failed) == ([], [])
    full.undo()
    allocation.files.take("algo-1", list(piece(words.FRAMES, 8, b"three")))
    allocation.loop.run_until(lambda: len(allocation.said) == 3, 60)
    assert allocation.said == [("algo-1", words.TAKEN)] * 3
    assert (tmp_path / "hosts" / "algo-1" / words.FRAMES).read_bytes() == b"one two three"
    allocation.files.take("algo-1", list(piece(words.FRAMES, 13, b" at once")))
    assert len(allocation.said) == 4


@pytest.mark.parametrize("why", ["it is full for too long", "the job is stopping"])
def test_a_host_fails_whose_files_find_no_room(allocation, full, monkeypatch, why):
    monkeypatch.setattr(arriving, "FULL_SECONDS", 0.1 if "long" in why else 600.0)
    allocation.files.take("algo-1", list(piece(words.FRAMES, 0, b"one ")))
    if "stopping" in why:
        allocation.files.hasten(("algo-1",))
    allocation.loop.run_until(lambda: bool(allocation.failed), 60)
    assert (allocation.failed, allocation.said) == ([("algo-1", errno.ENOSPC)], [("algo-1", words.TAKEN)])


def test_of_a_host_that_is_lost_nothing_is_done_any_more_until_it_begins_anew(allocation, full, tmp_path):
    files, log = allocation.files, tmp_path / "hosts" / "algo-1" / words.FRAMES
    files.take("algo-1", list(piece(words.FRAMES, 0, b"one ")))
    files.forget("algo-1")
    full.undo()
    allocation.loop.run_until(lambda: False, 0.2)
    assert allocation.said == []
    log.write_bytes(b"of the supervisor ")
    files.take("algo-1", list(piece(words.FRAMES, 0, b"again")))
    assert log.read_bytes() == b"of the supervisor again"


def test_a_host_may_be_lost_as_it_is_told_that_something_was_taken(allocation, full, monkeypatch):
    monkeypatch.setattr(allocation.files, "_tell", lambda host, _: allocation.files.forget(host))
    allocation.files.take("algo-1", list(piece(words.FRAMES, 0, b"one ")))
    full.undo()
    allocation.loop.run_until(lambda: not allocation.files._left, 60)
    allocation.loop.run_until(lambda: False, 0.1)


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
