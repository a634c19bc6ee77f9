"""Functions on the service: they travel in the code, and what they return comes from the job's archive in S3."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from estimator_sdk import HorovodRunner, JobFailed
from tests.waiting import SECONDS, wait_for

from .conftest import IMAGE, ROLE
from .instances import Instances


class OddDigit(Exception):
    pass


def work(fail=None):
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == fail:
        raise OddDigit("no such digit")
    return MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank)


@pytest.fixture
def call(platform, tmp_path):
    """Calls the function on two instances that take up the job as soon as it is submitted."""

    def run(what, **arguments):
        name = f"function-{what}"  # no other test's job is called so
        runner = HorovodRunner(
            np=4, instance_count=2, image_uri=IMAGE, role=ROLE, instance_type="ml.m5.xlarge", base_job_name=name
        )
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(runner.run, work, **arguments)
            service = platform.client("sagemaker")
            names = []

            def submitted():
                jobs = service.list_training_jobs(NameContains=name)["TrainingJobSummaries"]
                names.extend(job["TrainingJobName"] for job in jobs)
                return names or result.done()

            wait_for(submitted)
            if names:
                instances = Instances(platform, names[0], tmp_path / "instances")
                instances.start()
                instances.finish()
            return result.result(SECONDS)

    return run


def test_the_return_value_comes_from_the_archive_in_s3(call):
    assert call("returns") == 6


def test_the_exception_of_the_first_host_comes_as_what_it_was(call):
    with pytest.raises(OddDigit, match="no such digit") as raised:
        call("raises", fail=1)
    assert isinstance(raised.value.__cause__, JobFailed)


def test_the_exception_of_another_host_is_job_failed_with_its_words(call):
    """The archive holds what the first host left."""
    with pytest.raises(JobFailed, match="rank 3 on algo-2 .*OddDigit: no such digit"):
        call("fails", fail=3)
