"""What is known of a job, from its folder and from its supervisor's being gone."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from estimator_container.failures.verdict import Verdict

from estimator_sdk import BackendError, EstimatorError, Job, JobFailed, JobNotFound, list_jobs
from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.backends.supervised import job as local_job
from estimator_sdk.backends.supervised.job_folder import registry
from estimator_sdk.backends.supervised.job_folder.record import Process, Record, write_record
from estimator_sdk.backends.supervised.watch import Watch
from estimator_sdk.cli.main import main
from estimator_sdk.values.home import JobFolder
from tests.waiting import SECONDS

GONE = Process(1 << 22, "1")
"""No process has a number as high as the kernel's limit."""
HERE = Process.from_pid(os.getpid())
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
    folder = JobFolder.for_job(record.name)
    folder.path.mkdir(parents=True)
    write_record(record, folder)
    return folder


LOST = Verdict("host_lost", "algo-2 is gone", "algo-2", detail="no\n\0word \N{SNOWMAN}", victims=(0, 1))


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
    with pytest.raises(JobFailed, match="the record of running names no supervisor, so nothing is running it; see "):
        job.wait(SECONDS)
    assert list(job.logs(follow=True)) == []
    assert folder.path.exists() and main(["attach", "running"]) == 1


def test_a_job_that_another_machine_with_the_same_home_supervises_is_left_to_it(capsys):
    folder = made(replace(RUNNING, supervisor=replace(GONE, machine="n7")))
    job = Job.attach("running")
    assert job.status == "InProgress"
    assert "its supervisor is on n7; whether it still runs, only n7 can say" in job.why()
    said = f"running is supervised on n7; stop it there: `estimator stop running`.*no more.*remove {folder.path}$"
    with pytest.raises(BackendError, match=said):
        job.stop()
    said = (
        f"^running has not ended .* only n7 can say more; delete it there or, if n7 is no more, remove {folder.path}$"
    )
    with pytest.raises(BackendError, match=said):
        job.delete()
    assert job.wait(0.1) == "InProgress" and registry.last(folder).status == "InProgress"
    write_record(replace(DONE, name="running", supervisor=replace(GONE, machine="n7")), folder)
    assert job.wait(SECONDS) == "Completed"
    job.delete()
    assert not folder.path.exists()


def test_a_job_of_a_machine_that_has_another_name_by_now_is_stopped_there(monkeypatch):
    made(replace(RUNNING, supervisor=replace(HERE, machine="before")))
    told = []
    monkeypatch.setattr(local_job, "is_supervisor", lambda process, folder: process.is_alive())
    monkeypatch.setattr(local_job, "signal_supervisor", lambda process, folder, signum: told.append(process))
    job = Job.attach("running")
    job.stop()
    assert told == [HERE]
    with pytest.raises(EstimatorError, match="InProgress"):
        job.delete()


def test_the_end_of_a_job_that_another_machine_supervises_is_seen(monkeypatch):
    """A network file system tells nobody of what another machine writes."""
    folder = made(replace(RUNNING, supervisor=replace(GONE, machine="n7")))
    monkeypatch.setattr(Watch, "add", lambda self, path: None)
    threading.Timer(0.2, write_record, [replace(DONE, name="running", supervisor=GONE), folder]).start()
    assert Job.attach("running").wait(SECONDS) == "Completed"


def test_a_record_of_the_format_before_names_no_machine():
    fields = RUNNING.fields()
    del fields["supervisor"]["machine"]
    made(RUNNING).record.write_text(json.dumps({"format": 3, **fields}))
    assert Job.attach("running").status == "InProgress"


@pytest.mark.parametrize("lacks", ["a build of Python", "a kernel"])
def test_the_end_of_a_supervisor_is_noticed_without_a_descriptor_of_it(monkeypatch, lacks):
    """SIGKILL lets it write nothing, so that nothing in the folder tells of it."""

    def refuse(pid: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    with subprocess.Popen(["sleep", "60"]) as process:
        made(replace(RUNNING, supervisor=Process.from_pid(process.pid)))
        if lacks == "a kernel":
            monkeypatch.setattr(os, "pidfd_open", refuse)
        else:
            monkeypatch.delattr(os, "pidfd_open")
        threading.Timer(0.2, process.kill).start()
        with pytest.raises(JobFailed, match="ended without a result"):
            Job.attach("running").wait(SECONDS)


def test_an_end_that_is_written_while_the_supervisor_leaves_is_no_failure(monkeypatch):
    folder = made(replace(RUNNING, supervisor=GONE))
    end = replace(RUNNING, status="Completed", ended=4.0, supervisor=GONE)

    def leave(process: Process, folder: JobFolder) -> bool:
        write_record(end, folder)
        return False

    monkeypatch.setattr(registry, "is_supervisor", leave)
    assert registry.read(folder) == end


def test_who_watches_the_folder_sees_each_change():
    folder = made(RUNNING)
    watching = Watch()
    watching.add(folder.path)
    changes = [replace(RUNNING, reason=str(number)) for number in range(20)]
    told = []

    def watch() -> None:
        while not told or told[-1] != changes[-1]:
            watching.wait()
            told.append(registry.read(folder))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    for change in changes:
        write_record(change, folder)
    thread.join(SECONDS)
    assert not thread.is_alive()
    watching.close()


def test_a_job_whose_folder_was_removed_is_none_any_more_and_its_name_is_free():
    folder = made(DONE)
    made(RUNNING)
    folder.record.unlink()
    assert [job.name for job in list_jobs()] == ["running"]
    with pytest.raises(JobNotFound, match="/done has no record of a job, .*; if no process uses it, remove the rest$"):
        Job.attach("done")
    folder.path.rmdir()
    with pytest.raises(JobNotFound, match="no job 'done' in .*/jobs; Known: running"):
        Job.attach("done")
    later = replace(RUNNING, name="done")
    made(later)
    assert Job.attach("done")._started.record() == later


def test_a_record_that_cannot_be_understood_is_named_and_hides_no_other():
    made(RUNNING)
    strange = made(replace(DONE, name="strange"))
    strange.record.write_text(json.dumps({"format": 99, **DONE.fields()}))
    with pytest.warns(UserWarning, match=rf"strange cannot be read: {strange.record}: .*in format 99"):
        assert [job.name for job in list_jobs()] == ["running"]
    with pytest.raises(EstimatorError, match=rf"{strange.record}.*in format 99.*outputs are in {strange.path}"):
        Job.attach("strange")


def test_without_jobs_nothing_is_made(home):
    assert list_jobs() == []
    with pytest.raises(JobNotFound):
        Job.attach("any")
    assert not home.exists()
