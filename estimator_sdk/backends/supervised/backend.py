"""What the backends have in common whose jobs have a supervisor: jobs are found in the user's home."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import JobNotFound

if TYPE_CHECKING:
    from ..port import Capabilities
    from .job import LocalJob


class Supervised:
    """A backend without what makes it one: `plan`, `start`, and the `hosts` that a supervisor starts."""

    name: str
    capabilities: Capabilities

    def attach(self, name: str) -> LocalJob:
        """The job of that name. Raises JobNotFound, also for one of another backend."""
        from .job import attach  # not for the supervisor, which loads the backend to start what was planned

        job = attach(name)
        if (found := job.record().backend) != self.name:
            raise JobNotFound(f"the job {name!r} belongs to backend {found!r}, not to {self.name!r}")
        return job

    def list(self, limit: int | None = None) -> Sequence[LocalJob]:
        """The jobs of this backend, the newest first, at most `limit`."""
        from .job import jobs

        return jobs(self.name, limit)
