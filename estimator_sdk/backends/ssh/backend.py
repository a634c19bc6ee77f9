"""Jobs on a pool of machines that are reached by ssh: nothing is installed there, and no folder is shared."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import InvalidArgument, JobNotFound
from ...plan.plan import HostPlan, Plan
from ...spec import instances
from ...values.home import reading
from ..port import Finding, findings
from ..supervised.job_folder import registry
from . import CAPABILITIES
from .files import SshFolder, jobs_on_pools
from .on_host.words import PYTHON
from .on_machines import OnMachines, host

if TYPE_CHECKING:
    from ...spec.job_document import JobDocument
    from .job import SshJob
    from .pool import PoolHost


class SshBackend(OnMachines):
    """Runs the hosts of a job on the machines of a pool."""

    name = "ssh"
    capabilities = CAPABILITIES

    def plan(self, spec: JobDocument) -> Plan:
        """Resolve a job for its pool, without a connection. Raises InvalidArgument for what it cannot do."""
        from ...plan import distributions, inheritance, kernel_limits
        from ...plan import local as local_plan
        from . import checks

        machines = checks.machines_of(spec)
        plan = local_plan.base(spec, self.name, host, jobs_on_pools())
        checks.check(plan, machines)
        plan = checks.with_image(spec, plan)
        distributions.refuse_others(plan)
        plan = distributions.distributed(checks.with_slots(plan, machines), instances.gpus(plan.instance_type) or 0)
        checks.check_slots(plan, machines)
        plan = inheritance.for_containers(local_plan.with_command(plan, PYTHON, None), os.environ)
        return kernel_limits.check_containers(replace(plan, hosts=_placed(plan.hosts, machines)))

    def start(self, plan: Plan) -> SshJob:
        """Bring what the machines need, start the plan's hosts under a supervisor, and return at once.

        Raises BackendError, with nothing left running, for a machine that cannot be reached.
        """
        from . import launch

        return launch.start(plan)

    def attach(self, name: str) -> SshJob:
        """The job of that name that was started, or adopted, from this home. Raises JobNotFound."""
        from .job import SshJob

        with suppress(InvalidArgument):
            folder = SshFolder.for_job(name)
            if folder.record.exists():  # also of a client that has ended before it could say where the job runs
                return SshJob(folder)
        raise JobNotFound(f"none in {jobs_on_pools()}" if jobs_on_pools().exists() else "")

    def list(self, limit: int | None = None) -> Sequence[SshJob]:
        """The jobs that were started from this home, the newest first, at most `limit`."""
        folder = jobs_on_pools()
        if not folder.exists():
            return []
        from .job import SshJob

        with reading():
            jobs = [SshJob(SshFolder(folder / name)) for name in registry.names(folder)]
            found = [(created, job) for job in jobs if (created := job.created()) is not None]
        return [job for _, job in sorted(found, key=lambda each: -each[0])[:limit]]

    def check(self) -> Iterable[Finding]:
        """Look for what a client of machines needs."""
        from .checks import CHECKS

        return findings(self.name, CHECKS)


def _placed(hosts: Sequence[HostPlan], machines: Sequence[PoolHost]) -> tuple[HostPlan, ...]:
    """Each with the name of its machine where its address would be."""
    placed = zip(hosts, machines, strict=False)
    return tuple(replace(host, address=str(machine)) for host, machine in placed)
