"""The hosts of a job on Slurm: each is a step of its own, on a node of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract import names as contract
from estimator_container.contract.names import EXIT_STOPPED, Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.runtime.children import Children, signal_group
from estimator_container.runtime.loop import Loop

from ....errors import BackendError
from ....plan.plan import Plan
from ....values.home import JobFolder, make_folder
from ...supervised.supervisor.hosts import NotStarted, OnHostEnded
from ...supervised.supervisor.hosts_line import HostsLine, OnAttemptFailed
from ...supervised.supervisor.policy import variables_of_attempt
from ...supervised.supervisor.toolkits import Toolkits
from . import host_folder, steps
from .places import Places

if TYPE_CHECKING:
    from .nodes import Node, SlurmAllocation

FOR_ALL_SECONDS = 1.0
"""In which a scheduler that has signalled the supervisor has signalled every host."""
END_SECONDS = 15.0
"""That Slurm may take to say that a step is over which was killed."""


class SlurmHosts:
    """The hosts of one attempt."""

    def __init__(
        self,
        allocation: SlurmAllocation,
        plan: Plan,
        folder: JobFolder,
        attempt: int,
        loop: Loop,
        children: Children,
        on_ended: OnHostEnded,
    ) -> None:
        self._allocation = allocation
        self._plan = plan
        self._folder = folder
        self._attempt = attempt
        self._own_folder = folder.attempt(attempt)
        self._loop = loop
        self._children = children
        self._on_ended = on_ended
        self._secret = os.urandom(contract.SECRET_BYTES)
        self._steps: dict[str, int] = {}
        """Host -> the process of its srun."""
        self._begun: dict[str, tuple[int, int]] = {}
        """Host -> the attempt that its step was started for, and how long its log was then."""
        self._waiting: set[str] = set()
        """The hosts that do not run: they are to be launched again, or the whole job elsewhere."""
        self._launches: dict[str, int] = {}
        """Host -> how often it was tried while Slurm's controller did not answer."""
        self._is_told_to_stop = False
        self._places: Places
        self._toolkits = Toolkits(loop, tuple(host.name for host in plan.hosts), self._secret, self._runs)
        self._left: list[Sequence[str]] = []
        """What removes the folders of hosts that were killed, each from its node."""
        self._is_closing = False

    @property
    def first_host_at(self) -> str:
        return self._toolkits.first_host_at

    def line_to(self, host: str, on_failed: OnAttemptFailed, on_silence: Callable[[], None]) -> HostsLine:
        return self._toolkits.line_to(host, on_failed, on_silence)

    def wait_for_machines(self) -> None:
        """A job that runs has its nodes."""

    def start(self) -> None:
        try:
            nodes = self._allocation.nodes
        except (BackendError, OSError) as error:
            raise NotStarted(Verdict(Kind.PLATFORM, f"the nodes of the job are not known: {error}")) from None
        hosts = self._plan.hosts
        if len(nodes) * self._plan.hosts_per_node < len(hosts):
            self._start_elsewhere(f"{len(nodes)} nodes are left for {len(hosts)} hosts")
            return
        self._places = Places(tuple(host.name for host in hosts), nodes, self._plan.hosts_per_node)
        if self._plan.local_scratch is not None and not self._brings_channels(nodes):
            return
        self._toolkits.listen(nodes[0].address)
        for host in hosts:
            self._start_host(host.name, self._attempt)

    def end(self, host: str) -> None:
        if host in self._steps:
            steps.kill(self._allocation.number, host)
            signal_group(self._steps[host], signal.SIGKILL)
            self._loop.run_until(lambda: host not in self._steps, END_SECONDS)

    def start_again(self, host: str, attempt: int, first_host_at: str) -> None:
        self._waiting.discard(host)
        self._launches.pop(host, None)
        left = self._places.node_of(host)
        if self._places.move(host):
            self._children.start(steps.on(left.name, "true"), os.environ, lambda code: self._asked(left, code))
        self._start_where_it_can(host, attempt, first_host_at)

    def signal(self, signum: int) -> None:
        self._is_told_to_stop = True
        waiting, self._waiting = self._waiting, set()
        for host in waiting:
            self._on_ended(host, EXIT_STOPPED)
        if signum == signal.SIGKILL:
            for pid in self._steps.values():
                signal_group(pid, signum)
        elif self._allocation.is_interrupted:
            self._loop.after(FOR_ALL_SECONDS, self._toolkits.stop)
        else:
            self._toolkits.stop()

    def close(self) -> None:
        self._is_closing = True
        if self._steps:
            steps.kill(self._allocation.number, *self._steps)
        self.signal(signal.SIGKILL)
        self._loop.run_until(lambda: not self._steps, END_SECONDS)
        self._toolkits.close()

    def wait_until_gone(self) -> None:
        """Remove what hosts that were killed have left on their nodes."""
        waiting = {self._children.start(command, os.environ, lambda code: None) for command in self._left}
        self._left = []
        self._loop.run_until(lambda: not waiting & self._children.pids, END_SECONDS)

    # How they are started.

    def _brings_channels(self, nodes: Sequence[Node]) -> bool:
        """Have them on the nodes' own disks; returns whether the hosts are still to start. Raises NotStarted."""
        from .disks import disks_of  # most jobs have nothing there

        self._waiting = {host.name for host in self._plan.hosts}  # `signal` empties it
        disks = disks_of(self._allocation, self._plan, self._folder, self._loop, self._children)
        failed = disks.fill(nodes, self._places, self._own_folder, lambda: not self._waiting)
        waiting, self._waiting = self._waiting, set()
        if failed is not None:
            raise NotStarted(Verdict(Kind.CHANNELS, failed))
        return bool(waiting)

    def _start_where_it_can(self, host: str, attempt: int, first_host_at: str) -> None:
        """Start a host on its node or, if that is gone, on a spare one, or else the whole job elsewhere."""
        while self._allocation.is_down(node := self._places.node_of(host)):
            self._places.drop(node)
            if not self._places.move(host):
                self._allocation.lose(node)
                self._start_elsewhere(f"the node of {host}, {node.name}, is gone", host)
                return
            self._give_back(node)
        self._toolkits.expect(host, first_host_at)
        self._start_host(host, attempt)

    def _asked(self, node: Node, code: int) -> None:
        """A node that a host has left runs a program, so it was the host alone that was lost, or it does not."""
        if code and not self._is_closing:
            self._places.drop(node)
            self._give_back(node)

    def _give_back(self, node: Node) -> None:
        make_folder(self._own_folder)
        self._allocation.release(node, self._own_folder)

    def _start_elsewhere(self, why: str, host: str | None = None) -> None:
        """Have Slurm start the job again; until it interrupts this process for that, the host is without a node."""
        try:
            self._allocation.ask_for_others()
        except BackendError as error:
            raise NotStarted(Verdict(Kind.HOST_LOST, f"{why}, and Slurm gives no other: {error}", host)) from None
        self._waiting |= {host} if host is not None else {each.name for each in self._plan.hosts}

    def _launch_again(self, host: str) -> None:
        if host in self._waiting and not self._is_closing:
            self._waiting.discard(host)
            self._start_host(host, self._begun[host][0])

    def _start_host(self, name: str, attempt: int) -> None:
        (host,), node = (each for each in self._plan.hosts if each.name == name), self._places.node_of(name)
        host_folder.fill(self._plan, self._folder, self._allocation.channels_on(node), host, node, self._secret)
        make_folder(self._own_folder)
        fd = os.open(self._own_folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._begun[name] = (attempt, os.fstat(fd).st_size)
        around = self._allocation.environment
        environment = {
            **steps.variables(around, self._plan, self._folder, self._attempt, self._places, host),
            contract.PLATFORM_ADDRESS: self._toolkits.address,
            **variables_of_attempt(self._plan, attempt),
        }
        step = steps.of_host(self._plan, host, node)
        try:
            self._steps[name] = self._children.start(step, environment, lambda code: self._ended(name, code), fd, fd)
        finally:
            os.close(fd)
        self._toolkits.started(name)

    def _runs(self, host: str) -> bool:
        """Whether its toolkit has begun; Slurm may take its time to start it."""
        return Path(Layout(str(self._folder.host(host))).temporary_folders).exists()

    def _ended(self, host: str, code: int) -> None:
        del self._steps[host]
        self._toolkits.ended(host)
        node, layout, (_, since) = self._places.node_of(host), Layout(str(self._folder.host(host))), self._begun[host]
        log = self._own_folder / f"{host}.log"
        if code > 0 and not self._is_closing and (why_not := steps.why_not_launched(log, since)):
            self._not_launched(host, node, why_not)
            return
        code = steps.code_of_task(code, Path(layout.success).exists())
        if code < 0:
            self._left += steps.to_remove(node, layout)
        why = steps.without_image(self._plan, host, node, layout, log, since) if code > 0 else None
        self._on_ended(host, code, why)

    def _not_launched(self, host: str, node: Node, why: str) -> None:
        """Slurm does not reach the node, which it may not know yet; or something else is in the way."""
        if self._is_told_to_stop:
            self._on_ended(host, EXIT_STOPPED)
            return
        if steps.is_of_ended_job(why):
            self._waiting.add(host)
            return
        if steps.may_be_launched_later(why) and self._launches.get(host, 0) < steps.LAUNCHES:
            self._launches[host] = self._launches.get(host, 0) + 1
            self._waiting.add(host)
            self._loop.after(steps.LAUNCH_AGAIN_SECONDS, lambda: self._launch_again(host))
            return
        if not steps.lacks_node(why):
            what = f"Slurm does not start {host} on {node.name}: {why.removeprefix('srun: error: ')}"
            self._on_ended(host, -signal.SIGKILL, Verdict(Kind.PLATFORM, what, host))
            return
        self._places.drop(node)
        try:
            if self._places.move(host):
                self._give_back(node)
                self._start_where_it_can(host, self._begun[host][0], self._toolkits.first_host_at)
            else:
                self._allocation.lose(node)
                self._start_elsewhere(f"the node of {host}, {node.name}, cannot be reached", host)
        except NotStarted as reason:
            self._on_ended(host, -signal.SIGKILL, reason.verdict)
