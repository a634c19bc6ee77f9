"""The exit code that corresponds to a job's end."""

from __future__ import annotations

import signal

from estimator_container.contract.names import EXIT_STOPPED

from ..job.job import Job


def for_job(job: Job) -> int:
    """That of the first failing rank's command, and 128 and the number where a signal ended it.

    0 for a job that is completed, 143 for one that was stopped, and 1 for one that failed otherwise.
    """
    if job.status == "Completed":
        return 0
    if job.status == "Stopped":
        return EXIT_STOPPED
    verdict = job.verdict
    if verdict is None:
        return 1
    if verdict.signal is not None:
        return 128 + getattr(signal, verdict.signal, signal.SIGKILL)
    return verdict.exit_code or 1
