"""Jobs on the executors of a Spark session, as `HorovodRunner` starts them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import BackendError, InvalidArgument
from ...plan.plan import Plan
from ...spec import instances
from ..port import Finding, findings
from ..ssh.on_host.words import PYTHON
from ..ssh.on_machines import OnMachines, host
from ..supervised.backend import Supervised
from . import CAPABILITIES, NAME

if TYPE_CHECKING:
    from ...spec.job_document import JobDocument
    from ..supervised.job import LocalJob


class SparkBackend(OnMachines, Supervised):
    """Runs the hosts of a job on the executors that have the tasks of a stage.

    The task that keeps a host puts the folder of its own Python first in PATH, so that `PYTHON` is that.
    """

    name = NAME
    capabilities = CAPABILITIES

    def plan(self, spec: JobDocument) -> Plan:
        """Resolve a job whose hosts are the tasks of the stage that is there. Raises InvalidArgument."""
        from ...plan import distributions, inheritance, kernel_limits
        from ...plan import local as local_plan
        from ..ssh import checks
        from . import stage

        if stage.current() is None:
            what = f"backend {NAME!r} runs functions only: its hosts are tasks, which a job cannot name"
            raise InvalidArgument("backend", f"{what}; call HorovodRunner(np=N).run(main) in a Spark session")
        machines = checks.machines_of(spec)
        plan = local_plan.base(spec, self.name, host)
        checks.check(spec, plan, machines)
        distributions.refuse_others(plan)
        plan = distributions.distributed(plan, instances.gpus(plan.instance_type) or 0)
        plan = inheritance.for_containers(local_plan.with_command(plan, PYTHON, None), os.environ)
        placed = (replace(each, address=str(at)) for each, at in zip(plan.hosts, machines, strict=True))
        return kernel_limits.check_containers(replace(plan, hosts=tuple(placed)))

    def start(self, plan: Plan) -> LocalJob:
        """Start the plan's hosts under a supervisor, and return at once. Raises EstimatorError."""
        from ...code import store as code_store
        from . import stage

        found = stage.current()
        if found is None:
            raise BackendError(f"the tasks that {plan.job_name} was planned for are gone; call HorovodRunner again")
        code_store.upload(plan.code, plan.code_uri)
        return found.supervise(plan)

    def check(self) -> Iterable[Finding]:
        """Look for what a session needs on the driver's machine."""
        from .checks import CHECKS

        return findings(self.name, CHECKS)
