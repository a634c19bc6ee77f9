"""A job that has ended can be deleted; one that runs cannot, and loses nothing."""

from __future__ import annotations

import pytest

from estimator_sdk import EstimatorError, Job, JobNotFound, list_jobs
from tests.waiting import SECONDS

TRAINS = "import os; open(os.environ['SM_MODEL_DIR'] + '/weights', 'w').close()"


def test_what_was_kept_of_a_job_is_gone_and_its_name_is_free(script):
    job = script.run(TRAINS)
    folder = job.folder
    assert folder.exists() and job.model_data is not None
    job.delete()
    assert not [each for each in folder.parent.iterdir() if job.name in each.name]
    assert job.name not in {each.name for each in list_jobs()}
    with pytest.raises(JobNotFound):
        Job.attach(job.name)
    again = script.estimator("print('again')").fit(job_name=job.name, logs="none")
    assert again.status == "Completed"


def test_what_it_wrote_elsewhere_stays(script, tmp_path):
    place = tmp_path / "results"
    job = script.run(TRAINS, output_path=place.as_uri())
    job.delete()
    assert (place / job.name / "output" / "model.tar.gz").exists()


def test_a_job_that_runs_is_not_deleted(script):
    job = script.estimator("import time; print('up', flush=True); time.sleep(600)").fit(wait=False)
    next(job.logs(follow=True, stream="stdout"))
    with pytest.raises(EstimatorError, match=f"the job {job.name} is InProgress, so it was not deleted; stop it first"):
        job.delete()
    assert job.status == "InProgress"
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    job.delete()
    with pytest.raises(JobNotFound):
        Job.attach(job.name)


def test_what_an_interrupted_delete_left_goes_with_the_next(script):
    first, second = script.run("pass"), script.run("pass")
    left = first.folder.with_name(f".{first.name}.{1 << 22}")  # of a process that is gone
    first.folder.rename(left)
    second.delete()
    assert not left.exists()


def test_a_job_that_somebody_else_has_deleted_is_not_found(script):
    job = script.run("pass")
    again = Job.attach(job.name)
    job.delete()
    with pytest.raises(JobNotFound):
        again.delete()
