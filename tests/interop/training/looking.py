"""What tests of training steps look at while a job runs."""

from __future__ import annotations

from estimator_sdk import Job
from tests.conformance.jobs import events, tell
from tests.waiting import wait_for


def has_logs(job: Job) -> bool:
    return bool(job.log_files) and all(path.exists() for path in job.log_files)


def ended_once_a_rank_is_slow(job: Job) -> Job:
    """A job that trains until it has the file `enough`: it gets that when a rank was named, or none in time."""
    try:
        wait_for(lambda: has_logs(job) and events(job, "rank_slow"), 180, job.why)
    finally:
        tell(job, "enough")
    assert job.wait() == "Completed"
    return job
