"""Whether a job that failed is started again: a decision on the cause, and nothing else."""

from __future__ import annotations

from estimator_container.failures.verdict import Verdict


def is_worth_another(verdict: Verdict, attempt: int, max_retry_attempts: int) -> bool:
    """Whether attempt number `attempt`, from 1, that ended with this verdict is followed by another.

    A script that fails, fails again: as with SageMaker's RetryStrategy, only failures of the platform count
    ("RetryStrategy" in its API reference).
    """
    return verdict.may_pass and attempt <= max_retry_attempts
