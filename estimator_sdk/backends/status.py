"""How far a job is, and what is known of its attempts: the same words on every backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from estimator_container.failures.verdict import Verdict

from ..errors import EstimatorError

Status = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]
"""The values of TrainingJobStatus in SageMaker's DescribeTrainingJob."""
FINAL: frozenset[Status] = frozenset({"Completed", "Failed", "Stopped"})
"""Those that do not change any more."""


@dataclass(frozen=True)
class AttemptRecord:
    """What is known of one attempt at a job. Times are seconds since 1970."""

    number: int
    """From 1."""
    began: float
    ended: float | None = None
    """None while it runs, and if its supervisor was killed."""
    verdict: Verdict | None = None
    """Why it failed; None if it did not, or was stopped."""


def not_deleted(name: str, status: Status) -> EstimatorError:
    """What is said to somebody who would delete a job that has not ended."""
    return EstimatorError(
        f"the job {name} is {status}, so it was not deleted; stop it first, with `estimator stop {name} --wait` or "
        "Job.stop(), then delete it"
    )
