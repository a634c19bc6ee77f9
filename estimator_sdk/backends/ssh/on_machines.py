"""What backends have in common whose hosts are kept on other machines: those of a pool, and the executors of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimator_container.contract import names as contract

from ...plan.plan import HostPlan, Plan
from .on_host.words import PYTHON, TOOLKIT

if TYPE_CHECKING:
    from estimator_container.runtime.children import Children
    from estimator_container.runtime.loop import Loop

    from ...values.home import JobFolder
    from ..supervised.supervisor.hosts import Hosts, OnHostEnded
    from .on_host.machines import PoolMachines


class OnMachines:
    """A backend without what makes it one, but for its hosts."""

    def __init__(self) -> None:
        self._machines: PoolMachines | None = None
        """In a supervisor: those of its job."""

    def hosts(
        self,
        plan: Plan,
        folder: JobFolder,
        attempt: int,
        loop: Loop,
        children: Children,
        on_ended: OnHostEnded,
    ) -> Hosts:
        """The hosts of one attempt, for its supervisor."""
        from .on_host.hosts import SshHosts
        from .on_host.machines import PoolMachines

        if self._machines is None:
            self._machines = PoolMachines.inherited(loop)
        return SshHosts(self._machines, plan, folder, attempt, loop, children, on_ended)


def host(name: str, index: int, hosts: int) -> HostPlan:
    """A host that its machine's own Python runs, as `local.base` asks for one."""
    return HostPlan(
        name=name,
        address="",
        base_dir=name,
        argv=(PYTHON, "-I", "-S", TOOLKIT, "train"),
        environment={contract.CONSOLE: "off"},
    )
