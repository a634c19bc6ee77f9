"""Jobs on the executors of a Spark session, as an estimator or `HorovodRunner` starts them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

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
        """Resolve a job for the session of this process, or for the stage that is there for it.

        Raises InvalidArgument, also without a session, and for more tasks than its executors have slots.
        """
        from ...plan import distributions, inheritance, kernel_limits
        from ...plan import local as local_plan
        from . import checks, session, stage

        context = session.required(self.name)
        plan = local_plan.base(spec, self.name, host)
        checks.check(spec, plan)
        distributions.refuse_others(plan)
        plan = distributions.distributed(plan, instances.gpus(plan.instance_type) or 0)
        found = stage.current()
        if found is None:
            session.check_room(context, plan)
        else:
            placed = zip(plan.hosts, found.hosts, strict=True)
            plan = replace(plan, hosts=tuple(replace(each, address=at) for each, at in placed))
        plan = inheritance.for_containers(local_plan.with_command(plan, PYTHON, None), os.environ)
        return kernel_limits.check_containers(plan)

    def start(self, plan: Plan) -> LocalJob:
        """Start the plan's hosts under a supervisor, once Spark has started their tasks. Raises EstimatorError."""
        from ...code import store as code_store
        from . import session, stage

        code_store.upload(plan.code, plan.code_uri)
        if (found := stage.current()) is not None:
            return found.supervise(plan)
        context = session.required(self.name)
        session.check_room(context, plan)  # again, for executors come and go
        return stage.run_apart(context, session.Tasks.of_plan(plan, context), plan)

    def check(self) -> Iterable[Finding]:
        """Look for what a session needs on the driver's machine."""
        from .checks import CHECKS

        return findings(self.name, CHECKS)
