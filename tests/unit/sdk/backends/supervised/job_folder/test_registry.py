"""What is known of a job, from its database, from its folder, and from its supervisor's being gone."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from estimator_container.failures.verdict import Verdict

from estimator_sdk import EstimatorError, Job, JobFailed, JobNotFound, list_jobs
from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.backends.supervised.job_folder import registry
from estimator_sdk.backends.supervised.job_folder.record import Process, Record, write_copy
from estimator_sdk.backends.supervised.job_folder.state import State
from estimator_sdk.backends.supervised.watch import Watch
from estimator_sdk.cli.main import main
from estimator_sdk.values.home import JobFolder, state_file
from tests.unit.sdk.backends.supervised.job_folder.test_state import at_once, fill

GONE = Process(1 << 22, "1")
"""No process has a number as high as the kernel's limit."""
HERE = Process.of(os.getpid())
RUNNING = Record("running", "InProgress", "process", ("algo-1",), 2.5, (AttemptRecord(1, 3.0),), supervisor=HERE)
DONE = replace(RUNNING, name="done", status="Completed", created=1.0, ended=4.0, supervisor=GONE)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    # This process stands in for the supervisors; tests/attacks/test_state.py proves them.
    monkeypatch.setattr(registry, "is_supervisor", lambda process, folder: process.is_alive())
    return tmp_path / "home"


def made(record: Record) -> JobFolder:
    """A job, as its supervisor leaves it."""
    folder = JobFolder.of(record.name)
    folder.path.mkdir(parents=True)
    registry.claim(record, folder)
    return folder


def old(name: str, **fields: object) -> JobFolder:
    """A job as the version before the database left it."""
    folder = JobFolder.of(name)
    folder.path.mkdir(parents=True)
    document = {
        "format": 1,
        "name": name,
        "status": "Completed",
        "backend": "process",
        "hosts": ["algo-1", "algo-2"],
        "created": 1795308514.453899,
        "attempt": 1,
        "ended": 1795308515.5705943,
        "reason": "",
        "verdict": None,
        "output": f"file://{folder.output}",
        "model_data": f"file://{folder.output}/model.tar.gz",
        "supervisor": {"pid": GONE.pid, "start": GONE.start},
    }
    folder.record.write_text(json.dumps({**document, **fields}, indent=1))
    return folder


VERDICT = {
    "kind": "host_lost",
    "message": "algo-2 is gone: its connection to algo-1 ended in the middle of the job",
    "host": "algo-2",
    "rank": None,
    "exit_code": None,
    "signal": None,
    "detail": "the last words\n",
    "victims": [0, 1],
}
LOST = Verdict(**{**VERDICT, "victims": (0, 1)})


def known_to_the_database() -> set[str]:
    return {record.name for record in State(state_file()).all()}


def old_jobs() -> None:
    old("done", created=1.0)
    old("failed", created=2.0, status="Failed", verdict=VERDICT, model_data=None, attempt=3)
    old("stopped", created=3.0, status="Stopped", reason="stopped by the user", attempt=0)
    old("running", created=4.0, status="InProgress", ended=None, supervisor={"pid": HERE.pid, "start": HERE.start})
    old("killed", created=5.0, status="InProgress", ended=None)


def assert_that_the_old_jobs_are_there() -> None:
    jobs = {job.name: job for job in list_jobs()}
    assert [*jobs] == ["killed", "running", "stopped", "failed", "done"]
    assert [job.status for job in jobs.values()] == ["Failed", "InProgress", "Stopped", "Failed", "Completed"]
    assert jobs["failed"].verdict == LOST and "the last words" in jobs["failed"].why()
    assert jobs["done"].model_data == f"file://{jobs['done'].folder}/output/model.tar.gz"
    assert jobs["stopped"].reason == "stopped by the user"
    assert jobs["killed"].verdict.kind == "platform"
    assert len(jobs["failed"].log_files) == 6
    *earlier, last = jobs["failed"].attempts
    assert earlier == [AttemptRecord(1), AttemptRecord(2)]
    assert last == AttemptRecord(3, None, 1795308515.5705943, LOST)
    assert jobs["stopped"].attempts == []


def test_jobs_of_a_version_without_a_database_are_there_as_they_were():
    old_jobs()
    assert_that_the_old_jobs_are_there()
    assert known_to_the_database() == {"done", "failed", "stopped"}
    for name in known_to_the_database():
        JobFolder.of(name).record.unlink()
    assert_that_the_old_jobs_are_there()


@pytest.mark.parametrize("name", ["done", "failed", "stopped", "running", "killed"])
def test_such_a_job_is_found_by_its_name_too(name):
    old_jobs()
    assert Job.attach(name).name == name


def test_such_a_job_that_runs_is_followed_in_its_folder_until_its_end():
    folder = old("running", status="InProgress", ended=None, supervisor={"pid": HERE.pid, "start": HERE.start})
    job = Job.attach("running")
    assert job.status == "InProgress" and "running" not in known_to_the_database()
    document = json.loads(folder.record.read_text())
    for fields in ({"attempt": 2}, {"status": "Failed", "verdict": VERDICT, "ended": 9.0}):
        draft = folder.record.with_suffix(".new")
        document |= fields
        draft.write_text(json.dumps(document))
        draft.replace(folder.record)
        assert len(job.attempts) == document["attempt"]
    assert job.verdict == LOST and known_to_the_database() == {"running"}


MIGRATES = """
import sys
from estimator_sdk import list_jobs
sys.stdin.read(1)
print([(job.name, job.status) for job in list_jobs()])
assert len(list_jobs()) == 40
"""


def test_processes_that_take_them_over_at_once_do_not_disturb_each_other(home):
    for number in range(40):
        old(f"job-{number}", created=float(number))
    assert at_once(MIGRATES, home, 4) == [""] * 4
    assert known_to_the_database() == {f"job-{number}" for number in range(40)}


def test_a_supervisor_that_is_gone_without_a_result_has_failed_its_job_and_its_last_attempt():
    first = AttemptRecord(1, 1.0, 2.0, LOST)
    folder = made(replace(RUNNING, supervisor=GONE, attempts=(first, AttemptRecord(2, 2.0))))
    job = Job.attach("running")
    assert job.status == "Failed"
    assert f"the supervisor of running (process {GONE.pid}) ended without a result" in job.why()
    assert job.attempts == [first, AttemptRecord(2, 2.0, None, job.verdict)]
    assert str(folder.supervisor_log) in job.why()


def test_a_job_that_nobody_supervises_has_failed_and_is_not_waited_for():
    """As a record says that something else than a supervisor has written."""
    folder = made(replace(RUNNING, supervisor=None))
    job = Job.attach("running")
    with pytest.raises(JobFailed, match="the record of running names no supervisor, so nobody runs it; see "):
        job.wait(20)
    assert list(job.logs(follow=True)) == []
    assert folder.path.exists() and main(["attach", "running"]) == 1


@pytest.mark.parametrize("lacks", ["a build of Python", "a kernel"])
def test_the_end_of_a_supervisor_is_noticed_without_a_descriptor_of_it(monkeypatch, lacks):
    """SIGKILL lets it write nothing, so that nothing in the folder tells of it."""

    def refuse(pid: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    with subprocess.Popen(["sleep", "60"]) as process:
        made(replace(RUNNING, supervisor=Process.of(process.pid)))
        if lacks == "a kernel":
            monkeypatch.setattr(os, "pidfd_open", refuse)
        else:
            monkeypatch.delattr(os, "pidfd_open")
        threading.Timer(0.2, process.kill).start()
        with pytest.raises(JobFailed, match="ended without a result"):
            Job.attach("running").wait(20)


def test_an_end_that_the_database_has_lost_is_known_from_the_folder():
    folder = made(replace(DONE, status="InProgress", ended=None))
    write_copy(DONE, folder)
    assert registry.read(folder) == DONE
    folder.record.unlink()
    assert registry.read(folder) == DONE


def test_an_end_that_the_database_does_not_take_is_known_from_the_folder():
    folder = made(RUNNING)
    state_file().unlink()
    state_file().mkdir()
    with pytest.raises(PermissionError):
        registry.write(replace(DONE, name="running"), folder)
    assert registry.read(folder) == replace(DONE, name="running")


def test_who_watches_the_folder_finds_each_change_in_the_database():
    folder = made(RUNNING)
    watching = Watch()
    watching.add(folder.path)
    changes = [replace(RUNNING, reason=str(number)) for number in range(20)]
    told = []

    def watch() -> None:
        while not told or told[-1] != changes[-1]:
            watching.wait()
            told.append(State(folder.state).get("running"))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    for change in changes:
        registry.write(change, folder)
    thread.join(10)
    assert not thread.is_alive()
    watching.close()


def test_a_job_whose_folder_was_removed_is_none_any_more_and_its_name_is_free():
    folder = made(DONE)
    made(RUNNING)
    folder.record.unlink()
    folder.path.rmdir()
    assert [job.name for job in list_jobs()] == ["running"]
    with pytest.raises(JobNotFound, match="no job 'done' in .*/jobs; Known: running"):
        Job.attach("done")
    later = replace(RUNNING, name="done")
    made(later)
    assert Job.attach("done")._started.record() == later


def test_a_record_that_cannot_be_understood_is_named_and_hides_no_other():
    made(RUNNING)
    strange = old("strange", format=99)
    with pytest.warns(UserWarning, match=rf"strange cannot be read: {strange.record}: .*in format 99"):
        assert [job.name for job in list_jobs()] == ["running"]
    with pytest.raises(EstimatorError, match=rf"{strange.record}.*in format 99.*outputs are in {strange.path}"):
        Job.attach("strange")


def test_without_jobs_nothing_is_made(home):
    assert list_jobs() == []
    with pytest.raises(JobNotFound):
        Job.attach("any")
    assert not home.exists()


@pytest.fixture
def small_home(tmp_path, monkeypatch) -> Path:
    """A home on a disk of its own, of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    monkeypatch.setenv("ESTIMATOR_HOME", str(disk / "home"))
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_jobs_are_known_on_a_disk_that_takes_nothing(small_home, trouble):
    made(DONE)
    old("older", created=0.5)
    if trouble == "full":
        fill(small_home)
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(small_home)], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [(job.name, job.status) for job in list_jobs()] == [("done", "Completed"), ("older", "Completed")]
        assert Job.attach("done")._started.record() == DONE
    with pytest.raises(OSError, match="No space left|Read-only|Permission denied"):
        registry.write(replace(DONE, reason="x" * 10000), JobFolder.of("done"))
    assert Job.attach("done")._started.record() == DONE
