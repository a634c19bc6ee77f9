"""What a job needs before its hosts are started: its machines, and room on them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from .....plan.plan import Plan
from .....values.home import JobFolder, write_private
from ....supervised.supervisor.hosts import NotStarted
from ...checks import machines_of_plan
from ...files import waiting_file
from .claims import Claims, Terms
from .leases import Ticket

if TYPE_CHECKING:
    from ..machines import PoolMachines


def enter(machines: PoolMachines, plan: Plan, folder: JobFolder, is_over: Callable[[], bool]) -> None:
    """Wait for as many machines as the plan has hosts, and for room on them if the job is to. Raises NotStarted.

    It returns early once `is_over` is true.
    """
    missing = machines.wait_for(len(plan.hosts), is_over)
    if missing and not is_over():
        where = ", ".join(map(machines.at, missing))
        what = f"{where} did not connect to the job's supervisor at {machines.address}"
        raise NotStarted(Verdict(Kind.PLATFORM, f"{what}; see that no firewall is between the machines"))
    if machines.claims is None:
        machines.claims = Claims(machines.loop, machines.send, machines.at, _terms(plan, machines))
    waiting = waiting_file(folder)
    kept = [machine.name for machine in machines.machines if machine.name in machines.kept]
    count, waits = len(plan.hosts), bool(plan.decoded.reserved.queue)
    before = machines.claims.hold(kept[:count], waits, is_over, lambda who: write_private(waiting, who))
    with suppress(FileNotFoundError):
        waiting.unlink()
    if before:
        hint = "use queue=True to wait for them, other machines, or fewer processes_per_host"
        raise NotStarted(Verdict(Kind.PLATFORM, f"the machines have no room: {before}; {hint}"))
    for spare in kept[count:]:
        machines.use(spare)


def _terms(plan: Plan, machines: PoolMachines) -> Terms:
    """A job that does not wait, and does not say how many slots a machine has, is held to nothing."""
    unknown = None if plan.decoded.reserved.queue else 0
    named = zip(machines.machines, machines_of_plan(plan), strict=False)
    limits = {machine.name: host.slots or unknown for machine, host in named}
    ticket = Ticket(time.time(), f"{plan.job_name}.{os.urandom(4).hex()}")
    return Terms(plan.job_name, ticket, plan.processes_per_host, limits)
