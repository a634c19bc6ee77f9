"""How far a job is, and what is known of its attempts: the same words on every backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from estimator_container.failures.verdict import Verdict

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
