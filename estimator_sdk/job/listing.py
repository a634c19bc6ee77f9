"""The jobs that there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .job import Job

if TYPE_CHECKING:
    from ..backends.port import StartedJob, Summary


def list_jobs(backend: str | None = None, limit: int | None = None) -> list[Job]:
    """The jobs on this machine, the newest first; with `backend="sagemaker"` those in the configured AWS region.

    `backend` selects the jobs of one backend, and `limit` that many of the newest; None means all on this machine, and
    100 on SageMaker. Warns of a job on this machine whose state cannot be understood, and leaves it out. Raises
    InvalidArgument for an unknown backend, and BackendError if SageMaker does not answer.
    """
    return [Job(each) for each in _listed(backend, limit)]


def summaries(backend: str | None = None, limit: int | None = None) -> list[Summary]:
    """Summaries of the same jobs, without reading the records of finished jobs again. Raises as `list_jobs`."""
    return [each.summary() for each in _listed(backend, limit)]


def _listed(backend: str | None, limit: int | None) -> Sequence[StartedJob]:
    from .. import backends

    return backends.jobs(backend, limit)
