"""A local job from its start to its end, where something happens to its folder, its client or its supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from estimator_sdk import Estimator, EstimatorError, InvalidArgument, Job, JobFailed, list_jobs
from estimator_sdk.backends.supervised import client, detached
from estimator_sdk.values.home import JobFolder, jobs_folder, list_cache
from tests.conformance.jobs import kill_host, processes_of
from tests.waiting import SECONDS, remove_in_use, wait_until_stopped

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
    (job.folder / "hosts" / "algo-1" / "output" / "data" / "go").touch()


def test_a_job_that_runs_needs_nothing_but_its_folder(estimator):
    job = estimator.fit(wait=False)
    lines = job.logs(stream="stdout", follow=True)
    assert next(lines).data == b"up\n"
    assert [(each.name, each.status) for each in list_jobs()] == [(job.name, "InProgress")]
    list_cache(jobs_folder()).write_bytes(b"damage")
    go(job)
    assert list(lines) == []
    assert job.wait(SECONDS) == Job.attach(job.name).status == list_jobs()[0].status == "Completed"
    assert JobFolder.for_job(job.name).supervisor_log.read_text() == ""


def test_a_job_that_cannot_be_recorded_is_refused_and_its_name_stays_free(estimator, monkeypatch):
    def refuse(record, folder, held=None):
        raise OSError(28, "No space left on device", str(folder.record))

    with monkeypatch.context() as full:
        full.setattr(client, "write_record", refuse)
        with pytest.raises(EstimatorError, match="the job taken could not be started: .*No space.*; set ESTIMATOR_HOM"):
            estimator.fit(wait=False, job_name="taken")
    assert list(jobs_folder().iterdir()) == []
    assert processes_of(JobFolder.for_job("taken").path) == []
    job = estimator.fit(wait=False, job_name="taken")
    assert next(job.logs(stream="stdout", follow=True)).data == b"up\n"
    go(job)
    assert job.wait(SECONDS) == "Completed"


def test_a_job_whose_supervisor_does_not_end_keeps_its_name_though_its_folder_was_removed(estimator, monkeypatch):
    job = estimator.fit(wait=False, job_name="taken")
    assert next(job.logs(stream="stdout", follow=True)).data == b"up\n"
    supervisor = job._started.record().supervisor
    os.kill(supervisor.pid, signal.SIGSTOP)
    wait_until_stopped(supervisor.pid)
    try:
        remove_in_use(job.folder)
        monkeypatch.setattr(client, "LEAVING_SECONDS", 0.2)
        with pytest.raises(InvalidArgument, match=f"was removed, still runs as process {supervisor.pid}; end that"):
            estimator.fit(wait=False, job_name="taken")
        assert not job.folder.exists()
    finally:
        os.kill(supervisor.pid, signal.SIGCONT)
    monkeypatch.undo()


def test_a_job_whose_supervisor_is_killed_before_it_says_a_word_has_failed_for_everybody(estimator, monkeypatch):
    def start(*arguments, **others):
        supervisor = start_detached(*arguments, **others)
        supervisor.kill()
        return supervisor

    start_detached = detached.start
    monkeypatch.setattr(detached, "start", start)
    job = estimator.fit(wait=False)
    with pytest.raises(JobFailed, match="ended without a result"):
        job.wait(SECONDS)
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
    assert (
        subprocess.run([sys.executable, "-c", client_program], timeout=SECONDS, check=False).returncode
        == -signal.SIGKILL
    )
    with pytest.raises(JobFailed, match="its client ended before it had passed on the plan"):
        Job.attach("orphan").wait(SECONDS)


def test_a_job_is_stopped_as_soon_as_it_is_started(estimator):
    job = estimator.fit(wait=False)
    job.stop()
    assert job.wait(SECONDS) == "Stopped"


LEAVES_TRACES = """
import os, time
from pathlib import Path
base = Path(os.environ["SM_MODEL_DIR"]).parent
places = [base / each for each in ("model", "output/data", "checkpoints", "input/data")]
print("found", [path.name for place in places for path in place.iterdir()], flush=True)
seen = Path(os.environ["SEEN"])
for place in places:
    (place / f"of-{seen.exists()}").touch()
if not seen.exists():
    seen.touch()
    (base / "model").chmod(0)
    print("up", flush=True)
    time.sleep(600)
"""


def test_a_new_attempt_finds_nothing_of_the_one_before_and_nothing_of_that_is_lost(estimator, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(LEAVES_TRACES)
    environment = {"SEEN": str(tmp_path / "seen")}
    estimator = Estimator(entry_point=str(script), backend="process", environment=environment, max_retry_attempts=1)
    job = estimator.fit(wait=False)
    lines = job.logs(stream="stdout", follow=True)
    assert [next(lines).data, next(lines).data] == [b"found []\n", b"up\n"]
    kill_host(job, "algo-1")
    assert [line.data for line in lines] == [b"found []\n"]  # who follows goes on with the second attempt
    assert job.wait(SECONDS) == "Completed" and len(job.attempts) == 2
    assert [line.data for line in job.logs(stream="stdout")] == [b"found []\n", b"up\n", b"found []\n"]
    first, second = job.log_files
    assert first == job.folder / "attempts/1/hosts/algo-1/output/logs/frames" and first.is_file()
    assert second == job.folder / "hosts/algo-1/output/logs/frames" and second.is_file()
    assert (job.folder / "attempts/1/hosts/algo-1/output/data/of-False").exists()
    assert [path.name for path in job.download(tmp_path / "model").iterdir()] == ["of-True"]
