"""The jobs that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .job import Job

if TYPE_CHECKING:
    from ..backends.port import Summary


def list_jobs(backend: str | None = None, limit: int | None = None) -> list[Job]:
    """The jobs on this machine, the newest first; with `backend="sagemaker"` those in the configured AWS region.

    `backend` selects the jobs of one backend, and `limit` that many of the newest; None means all on this machine, and
    100 on SageMaker. Warns of a job on this machine whose state cannot be understood, and leaves it out. Raises
    InvalidArgument for an unknown backend or a limit that cannot be a number of jobs, and BackendError if SageMaker
    does not answer.
    """
    from .. import backends

    if limit is not None:
        from .asked import check_whole

        check_whole("limit", limit, 0)
    return [Job(each) for each in backends.jobs(backend, limit)]


def summaries(backend: str | None = None, limit: int | None = None) -> list[Summary]:
    """Summaries of the same jobs, without reading the records of finished jobs again. Raises as `list_jobs`.

    Without `backend` also of those that were submitted to a service from here. It is asked about the newest that have
    not ended, and what was last heard of a job is shown where it does not answer soon.
    """
    from .. import backends

    found = [each.summary() for each in backends.jobs(backend, limit)]
    noted = backends.submitted() if backend is None else []
    if noted:
        from . import services  # hardly anybody has such jobs

        services.ask(noted)
        found += [each.summary() for each in noted]
        found.sort(key=lambda each: each.created or 0.0, reverse=True)
    return found[:limit]
