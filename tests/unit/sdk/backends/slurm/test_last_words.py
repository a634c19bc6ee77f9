"""What is said of a job whose supervisor has left no word, by a process that looks once; `squeue` is a script."""

import os
import time
from dataclasses import replace

import pytest

from estimator_sdk.backends.slurm import queue
from estimator_sdk.backends.slurm.allocation import program
from estimator_sdk.backends.slurm.files import SlurmFolder
from estimator_sdk.backends.slurm.job import SlurmJob
from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.backends.supervised.job_folder.record import Record, read_record, write_record

NEVER = queue._Look(-queue.ASK_AGAIN_SECONDS, -queue.ASK_AGAIN_SECONDS, None)
HOUR = 3600.0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(queue, "_last", NEVER)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    made = SlurmFolder(tmp_path / "job")
    made.path.mkdir()
    began = time.time() - HOUR
    record = Record("job", "InProgress", "slurm", ("algo-1",), began)
    write_record(replace(record, attempts=(AttemptRecord(1, began),)), made)
    made.write_number(7)
    return made


@pytest.fixture
def squeue(tmp_path):
    def says(line: str) -> None:
        program = tmp_path / "squeue"
        program.write_text(f"#!/bin/sh\necho '{line}|{os.getuid()}|gpu|7'\n")
        program.chmod(0o755)

    accounting = tmp_path / "sacct"
    accounting.write_text("#!/bin/sh\necho 'Slurm accounting storage is disabled' >&2\nexit 1\n")
    accounting.chmod(0o755)
    return says


def slurms(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment))


def test_who_looks_once_sees_that_a_job_has_long_failed(folder, squeue):
    squeue(f"7|FAILED|NonZeroExitCode|{slurms(time.time() - HOUR)}|{slurms(time.time() - HOUR / 2)}")
    record = SlurmJob(folder).record()
    assert (record.status, "job 7 of Slurm is FAILED" in record.verdict.message) == ("Failed", True)


def test_a_job_that_has_just_ended_may_have_more_to_say(folder, squeue):
    squeue(f"7|FAILED|NonZeroExitCode|{slurms(time.time() - HOUR)}|{slurms(time.time())}")
    assert SlurmJob(folder).record().status == "InProgress"


def test_who_looks_once_sees_that_slurm_has_forgotten_a_job(folder, squeue):
    squeue("8|RUNNING|None|N/A|N/A")
    assert SlurmJob(folder).record().status == "Failed"


def test_an_answer_from_before_a_job_was_submitted_says_nothing_of_it(folder, squeue, monkeypatch):
    monkeypatch.setattr(queue, "ASK_AGAIN_SECONDS", HOUR / 2)
    squeue("8|RUNNING|None|N/A|N/A")
    queue.look(0.0)
    assert SlurmJob(folder).record().status == "InProgress"


def test_a_job_that_runs_until_its_limit_runs(folder, squeue):
    squeue(f"7|RUNNING|None|{slurms(time.time() - HOUR)}|{slurms(time.time() + HOUR)}")
    assert SlurmJob(folder).record().status == "InProgress"


def test_who_looks_once_at_a_job_that_waits_sees_why(folder, squeue):
    squeue("7|PENDING|JobHeldUser|N/A|N/A")
    record = SlurmJob(folder).record()
    assert (record.status, record.reason) == ("InProgress", "pending: JobHeldUser")
    assert not read_record(folder).reason, "what is true now was kept"


def test_who_looks_once_at_a_job_that_was_exported_sees_how_to_submit_it(folder):
    folder.submission.unlink()
    folder.exported.write_text("/home/ada/my job.sh")
    record = SlurmJob(folder).record()
    assert (record.status, record.reason) == ("InProgress", "submit it with `sbatch '/home/ada/my job.sh'`")


def test_a_job_that_nobody_submits_any_more_has_failed(folder):
    folder.submission.unlink()
    folder.given.write_text("secrets")
    record = SlurmJob(folder).record()
    assert (record.status, "ended before it had one" in record.verdict.message) == ("Failed", True)
    assert not folder.given.exists()


def test_a_job_that_is_being_submitted_is_told_to_stop_once_it_starts(folder):
    folder.submission.unlink()
    write_record(replace(read_record(folder), created=time.time()), folder)
    job = SlurmJob(folder)
    job.stop()
    assert (job.record().status, folder.stop_request.exists()) == ("InProgress", True)


def test_a_supervisor_whose_folder_is_another_jobs_leaves_it_alone(folder, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_JOB_ID", "6")
    assert program.main(str(folder.path)) == 1
    assert "what is there now belongs to job 7" in capsys.readouterr().err
