"""The record of a job: whole at every moment, on the disk before it is seen, and written into no other job's folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from estimator_container.failures.verdict import Verdict

from estimator_sdk import EstimatorError, Job
from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.backends.supervised.job_folder.hold import Hold, NotOurs
from estimator_sdk.backends.supervised.job_folder.record import Process, Record, read_record, write_record
from estimator_sdk.values.home import JobFolder
from tests.waiting import SECONDS

LOST = Verdict("host_lost", "algo-2 is gone", "algo-2", detail="no\n\0word \N{SNOWMAN}", victims=(0, 3))
FAILED = Record(
    "failed",
    "Failed",
    "docker",
    ("algo-1",),
    1.25,
    (AttemptRecord(1, 1.5, 2.0, LOST), AttemptRecord(2, 2.0, 3.0, replace(LOST, host="algo-1"))),
    ended=3.5,
    reason="a file that is no text: \udcff",
    verdict=replace(LOST, host="algo-1"),
    output="file:///\udcfe/failed/output",
    model_data="s3://bucket/failed/output/model.tar.gz",
    supervisor=Process(8, "100"),
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> JobFolder:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path))
    folder = JobFolder.for_job("failed")
    folder.path.mkdir(parents=True)
    return folder


def test_a_job_comes_back_as_it_was_written_and_only_its_user_can_read_it(folder):
    assert read_record(folder) is None
    write_record(FAILED, folder)
    assert read_record(folder) == FAILED
    assert folder.record.stat().st_mode & 0o777 == 0o600
    assert list(folder.path.iterdir()) == [folder.record]


WRITES = """
import os, sys
from dataclasses import replace
from pathlib import Path
from estimator_sdk.backends.supervised.job_folder.record import Process, read_record, write_record
from estimator_sdk.values.home import JobFolder
folder = JobFolder(Path(sys.argv[1]))
running = replace(read_record(folder), status="InProgress", ended=None, supervisor=Process.from_pid(os.getpid()))
for number in range(1 << 30):
    if number == 1:
        {once}
    write_record(replace(running, reason=str(number)), folder)
    os.write(1, b"%d " % number)
"""


@pytest.mark.parametrize(
    "once",
    [
        "os.rename = lambda *names, **folders: os.kill(os.getpid(), 9)",
        "os.fsync = lambda fd: os.kill(os.getpid(), 9)",
        "import threading; threading.Timer(0.3, os.kill, (os.getpid(), 9)).start()",
    ],
    ids=["before it has its name", "before it is on the disk", "at some moment"],
)
def test_a_supervisor_that_is_killed_between_two_writes_of_a_record_loses_nothing(folder, once):
    write_record(FAILED, folder)
    argv = [sys.executable, "-c", WRITES.format(once=once), str(folder.path)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False, timeout=SECONDS)
    assert done.returncode == -signal.SIGKILL
    last = int(done.stdout.split()[-1])
    kept = read_record(folder)
    assert kept.reason in (str(last), str(last + 1)) and kept.attempts == FAILED.attempts
    job = Job.attach("failed")
    assert job.status == "Failed" and "ended without a result" in job.why()
    write_record(FAILED, folder)  # what was half written is in nobody's way
    assert read_record(folder) == FAILED


def test_a_write_through_a_held_folder_goes_into_no_other_of_its_name(folder):
    hold = Hold(folder)
    write_record(FAILED, folder, hold.fileno())
    assert read_record(folder) == FAILED
    shutil.rmtree(folder.path)
    folder.path.mkdir()
    with pytest.raises(NotOurs):
        hold.check()
    with pytest.raises(FileNotFoundError):
        write_record(FAILED, folder, hold.fileno())
    assert list(folder.path.iterdir()) == []


def test_a_link_in_the_place_of_the_draft_is_not_followed(folder, tmp_path):
    (tmp_path / "foreign").write_text("mine")
    Path(f"{folder.record}.new").symlink_to(tmp_path / "foreign")
    with pytest.raises(OSError, match="symbolic links"):
        write_record(FAILED, folder, Hold(folder).fileno())
    assert (tmp_path / "foreign").read_text() == "mine"


@pytest.mark.parametrize(
    ("time", "why"),
    [(-1.0, "is not a time"), (1e300, "is not a time"), (float("nan"), "not nan"), (float("inf"), "is not a time")],
)
def test_what_is_no_time_is_a_damaged_record(folder, time, why):
    write_record(replace(FAILED, created=time), folder)
    with pytest.raises(EstimatorError, match=f"the record of the job failed cannot be read: .*{why}"):
        read_record(folder)


def test_a_disk_that_takes_no_change_keeps_what_there_was(folder, monkeypatch):
    write_record(FAILED, folder)

    def refuse(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_record(replace(FAILED, reason="other"), folder)
    assert read_record(folder) == FAILED
    assert list(folder.path.iterdir()) == [folder.record]


def test_two_clients_that_write_at_once_leave_a_whole_record(folder, monkeypatch):
    """Of a job on another machine each of them keeps what it has heard."""
    real, once = os.fsync, []

    def meanwhile(fd: int) -> None:
        if not once:
            once.append(fd)
            write_record(replace(FAILED, reason="x" * 1000), folder)
        real(fd)

    monkeypatch.setattr(os, "fsync", meanwhile)
    write_record(FAILED, folder)
    assert read_record(folder) == FAILED
    assert list(folder.path.iterdir()) == [folder.record]
