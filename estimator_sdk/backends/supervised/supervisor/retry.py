"""Whether a job that failed is started again: a decision on the cause, and nothing else."""

from __future__ import annotations

from estimator_container.failures.verdict import Verdict

OF_THE_PLATFORM = frozenset({"host_lost", "host_missing", "frozen", "platform"})
"""What another attempt may not meet again. A script that fails, fails again."""


def is_worth_another(verdict: Verdict, attempt: int, max_retry_attempts: int) -> bool:
    """Whether attempt number `attempt`, from 1, that ended with this verdict is followed by another.

    As with SageMaker's RetryStrategy, only failures of the platform count ("RetryStrategy" in its API reference).
    """
    return verdict.kind in OF_THE_PLATFORM and attempt <= max_retry_attempts
