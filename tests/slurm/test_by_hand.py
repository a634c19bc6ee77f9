"""A script that is written for somebody to submit."""

from __future__ import annotations

import re

import pytest

from estimator_sdk import Estimator, Job, list_jobs
from estimator_sdk.backends.slurm import job as slurm_job
from estimator_sdk.backends.slurm import queue
from estimator_sdk.errors import BackendError
from tests.waiting import SECONDS


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(queue, "ASK_AGAIN_SECONDS", 1.0)
    monkeypatch.setattr(slurm_job, "SUBMISSION_SECONDS", 0.0)  # as if it had been written long ago


@pytest.fixture
def exported(tmp_path, slurm):
    def made(name: str = "job.sh") -> Job:
        (tmp_path / "train.py").write_text("import os\nprint(os.environ.get('OF_THE_SHELL'))")
        options = {"export_script": str(tmp_path / name)}
        estimator = Estimator(
            entry_point=str(tmp_path / "train.py"), instance_type="slurm", instance_count=2, slurm=options
        )
        return estimator.fit(wait=False)

    return made


def test_a_script_that_is_submitted_by_hand_runs_the_job(exported, slurm, tmp_path, monkeypatch):
    job = exported()
    assert (job.status, job._started.folder.read_number()) == ("InProgress", None)
    assert job._started._why_pending() == f"submit it with `sbatch {tmp_path}/job.sh`"
    monkeypatch.setenv("OF_THE_SHELL", "which no host inherits")
    assert re.fullmatch("Submitted batch job [0-9]+", slurm.run("sbatch", str(tmp_path / "job.sh")).strip())
    assert job.wait(timeout=SECONDS) == "Completed", job.why()
    assert [line.data for line in job.logs(stream="stdout")] == [b"None\n"] * 2


def test_one_that_is_stopped_before_runs_nothing_when_it_is_submitted(exported, slurm, tmp_path):
    job = exported()
    job.stop()
    assert job.status == "Stopped"
    slurm.run(
        "sbatch", "--wait", "--parsable", f"--output={tmp_path / 'said'}", f"--wrap=sh {tmp_path / 'job.sh'} || :"
    )
    assert (job.status, list(job.logs())) == ("Stopped", [])


def test_no_file_is_overwritten_and_no_job_is_left(exported, tmp_path):
    (tmp_path / "mine.sh").write_text("mine")
    with pytest.raises(BackendError, match="which is there already; remove it, or name another file"):
        exported("mine.sh")
    with pytest.raises(BackendError, match="which cannot be written"):
        exported("no/folder.sh")
    assert (list_jobs(), (tmp_path / "mine.sh").read_text()) == ([], "mine")
