"""The ledger of a job, for reports that also have jobs of which there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import EstimatorError

if TYPE_CHECKING:
    from ..job.job import Job
    from ..job.ledger import Ledger


def ledger_of(job: Job) -> Ledger | None:
    """Where its time went; None for a job that runs elsewhere, and where its log cannot be read."""
    try:
        return job.ledger() if job.log_files else None
    except (EstimatorError, OSError):
        return None
