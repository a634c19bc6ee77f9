"""A local job from its start to its end, where something happens to the database of the jobs."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys

import pytest

from estimator_sdk import Estimator, EstimatorError, Job, JobFailed, list_jobs
from estimator_sdk.backends.supervised import detached
from estimator_sdk.values.home import JobFolder, jobs_folder, state_file
from tests.conformance.jobs import processes_of
from tests.unit.sdk.backends.supervised.job_folder.test_state import garbage

WAITS = """
import os, time
print("up", flush=True)
while not os.path.exists(os.environ["SM_OUTPUT_DATA_DIR"] + "/go"):
    time.sleep(0.05)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


@pytest.fixture
def estimator(tmp_path) -> Estimator:
    script = tmp_path / "train.py"
    script.write_text(WAITS)
    return Estimator(entry_point=str(script), backend="process")


def go(job: Job) -> None:
    (job.folder / "attempts" / "1" / "algo-1" / "output" / "data" / "go").touch()


def test_a_job_that_runs_while_the_database_is_damaged_is_known_and_ends_as_ever(estimator):
    job = estimator.fit(wait=False)
    lines = job.logs(stream="stdout", follow=True)
    assert next(lines).data == b"up\n"
    garbage(state_file())
    with pytest.warns(UserWarning, match="was damaged: file is not a database; .* from their folders: 1$"):
        assert [(each.name, each.status) for each in list_jobs()] == [(job.name, "InProgress")]
    garbage(state_file())
    go(job)
    assert list(lines) == []
    assert job.wait(30) == Job.attach(job.name).status == "Completed"
    assert "was damaged" in JobFolder.of(job.name).supervisor_log.read_text()
    assert len(list(state_file().parent.glob("*.damaged-*"))) == 2


def test_a_job_that_cannot_be_recorded_is_refused_and_leaves_nothing(estimator):
    state_file().parent.mkdir(parents=True)
    with sqlite3.connect(state_file()) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(EstimatorError, match="was made by a newer version of estimator-sdk"):
        estimator.fit(wait=False, job_name="refused")
    assert list(jobs_folder().iterdir()) == []
    assert processes_of(JobFolder.of("refused").path) == []


def test_a_database_that_is_no_file_is_one_sentence_and_the_name_stays_free(estimator):
    state_file().mkdir(parents=True)
    with pytest.raises(EstimatorError, match="the job taken could not be started: .*state.db'; set ESTIMATOR_HOME"):
        estimator.fit(wait=False, job_name="taken")
    state_file().rmdir()
    job = estimator.fit(wait=False, job_name="taken")
    assert next(job.logs(stream="stdout", follow=True)).data == b"up\n"
    go(job)
    assert job.wait(30) == "Completed"


def test_a_job_whose_supervisor_is_killed_before_it_says_a_word_has_failed_for_everybody(estimator, monkeypatch):
    def start(*arguments, **others):
        supervisor = start_detached(*arguments, **others)
        supervisor.kill()
        return supervisor

    start_detached = detached.start
    monkeypatch.setattr(detached, "start", start)
    job = estimator.fit(wait=False)
    with pytest.raises(JobFailed, match="ended without a result"):
        job.wait(20)
    for each in (job, Job.attach(job.name)):
        assert each.status == "Failed"
        each.stop()


def test_a_job_whose_client_ends_before_it_hands_over_the_plan_has_failed(estimator, tmp_path):
    client_program = f"""
from estimator_sdk import Estimator
from estimator_sdk.plan.plan import Plan
def die(plan):
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
Plan.to_json = die
Estimator(entry_point={str(tmp_path / "train.py")!r}, backend="process").fit(wait=False, job_name="orphan")
"""
    assert subprocess.run([sys.executable, "-c", client_program], timeout=60, check=False).returncode == -signal.SIGKILL
    with pytest.raises(JobFailed, match="its client ended before it had handed over the plan"):
        Job.attach("orphan").wait(20)


def test_a_job_is_stopped_as_soon_as_it_is_started(estimator):
    job = estimator.fit(wait=False)
    job.stop()
    assert job.wait(30) == "Stopped"
