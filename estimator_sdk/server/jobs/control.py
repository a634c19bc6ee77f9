"""The two things that the console does to jobs: stop one, and run one again under a new name."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from ...errors import EstimatorError
from ...estimator import launch
from ...job.job import Job
from ...spec.job_document import JobDocument
from ...values import job_name

if TYPE_CHECKING:
    from ...backends.port import StartedJob

_STAMP = re.compile(r"-\d{4}(-\d{2}){5}-\d{3}-[0-9a-f]{6}$", re.ASCII)


def stop(job: StartedJob) -> str:
    """Ask a job to stop; returns a sentence. Raises BackendError where it is another user's."""
    state = job.record()
    if state.is_final:
        return f"{job.name} has ended already: it is {state.status}"
    job.stop()
    return f"{job.name} was asked to stop"


def retry(job: StartedJob) -> str:
    """Run a job that has ended again, from its document; returns the name of the new job.

    Raises EstimatorError for a job that has not ended, InvalidArgument for what cannot be run from its document alone,
    such as a job whose secrets were left out of it, and as `launch.run`.
    """
    state = job.record()
    if not state.is_final:
        raise EstimatorError(f"{job.name} is {state.status}; stop it first, or wait for its end")
    name = job_name.unique(_STAMP.sub("", job.name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of secrets among arguments: whoever started the job has been told
        spec = JobDocument.from_request(dict(job.request()))
        plan = launch.plan_of(spec, state.backend, name)
        started: Job = launch.run(plan, wait=False, logs="none")
    return started.name
