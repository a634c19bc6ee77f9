"""The logs of a job's attempts, while one takes the place of another."""

from __future__ import annotations

from pathlib import Path

import pytest
from estimator_container.logs.frames import STDOUT, FrameWriter

from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.backends.supervised.job_folder import logs
from estimator_sdk.backends.supervised.job_folder.record import Record
from estimator_sdk.values.home import JobFolder

ONE = Record("job", "InProgress", "process", ("algo-1",), 1.0, (AttemptRecord(1, 1.0),))


def write(hosts: Path, text: str) -> None:
    path = logs.log_file(hosts, "algo-1")
    path.parent.mkdir(parents=True)
    frames = FrameWriter(str(path))
    frames.write(0, STDOUT, f"{text}\n".encode())
    frames.close()


def lines(folder: JobFolder, attempt: int) -> list[bytes]:
    found = logs.open_logs(folder, ONE, attempt)
    return [line.data for log in found for block in log.last_blocks() for line in block.lines()]


def another(folder: JobFolder) -> None:
    """The second attempt begins."""
    folder.attempt(1).mkdir(parents=True)
    folder.hosts.rename(folder.left(1))
    write(folder.hosts, "second")


def test_each_attempt_has_its_own_log(tmp_path):
    folder = JobFolder(tmp_path)
    assert lines(folder, 1) == []
    write(folder.hosts, "first")
    assert lines(folder, 1) == [b"first\n"]
    another(folder)
    assert [lines(folder, attempt) for attempt in (1, 2)] == [[b"first\n"], [b"second\n"]]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("looks", range(4))
def test_who_opens_a_log_while_the_next_attempt_begins_has_the_right_one(tmp_path, monkeypatch, looks, when):
    folder = JobFolder(tmp_path)
    write(folder.hosts, "first")
    is_file, left = Path.is_file, looks

    def look(path: Path) -> bool:
        nonlocal left
        left -= 1
        if left != 0:
            return is_file(path)
        monkeypatch.undo()
        found = is_file(path)
        another(folder)
        return found if when == "after" else is_file(path)

    monkeypatch.setattr(Path, "is_file", look)
    assert lines(folder, 1) == [b"first\n"]
