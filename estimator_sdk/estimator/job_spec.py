"""A job as data that can be run: what an estimator makes, and what `JobSpec.from_request` takes from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..spec.job_document import JobDocument
from ..spec.structure import structure

if TYPE_CHECKING:
    from ..display.progress import Logs
    from ..job.job import Job
    from ..plan.plan import Plan


@structure
class JobSpec(JobDocument):
    """A complete job: what `fit()` runs, and what CreateTrainingJob accepts.

    Equal documents make equal specs. Values are read-only and are checked against their types when a spec is
    created; further restrictions of a service (patterns, lengths) are left to the service.
    """

    def plan(self, backend: str | None = None, job_name: str | None = None) -> Plan:
        """What `fit()` with the same arguments would run. Raises InvalidArgument."""
        from . import launch

        return launch.plan_of(self, backend, job_name)

    def fit(
        self, backend: str | None = None, wait: bool = True, logs: Logs | bool = "all", job_name: str | None = None
    ) -> Job:
        """Run the job as `Estimator.fit` does, on the backend that its instance type chooses, or on `backend`.

        `job_name` replaces the job's own name. Raises InvalidArgument, and JobFailed.
        """
        from . import launch

        chosen = launch.checked_logs(logs)
        return launch.run(self.plan(backend, job_name), wait, chosen)
