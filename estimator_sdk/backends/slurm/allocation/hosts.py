"""The hosts of a job on Slurm: each is a step of its own, on a node of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract import names as contract
from estimator_container.contract.names import EXIT_STOPPED, Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.host.coordination import platform_line as words
from estimator_container.mesh.endpoint import text_of
from estimator_container.mesh.mesh import Member, MeshLeader
from estimator_container.runtime import machine
from estimator_container.runtime.children import Children, signal_group
from estimator_container.runtime.loop import Loop

from ....errors import BackendError
from ....plan.plan import HostPlan, Plan
from ....values.home import JobFolder, make_folder
from ...supervised.supervisor import base_directory
from ...supervised.supervisor.hosts import NotStarted, OnHostEnded
from ...supervised.supervisor.hosts_line import MISSED_BEATS, HostsLine, OnAttemptFailed
from ...supervised.supervisor.policy import variables_of_attempt
from .. import queue
from .kept_line import KeptLine

if TYPE_CHECKING:
    from .nodes import Node, SlurmAllocation

SRUN = ("srun", "--kill-on-bad-exit=0", "--overlap", "--nodes=1", "--ntasks=1", "--export=ALL")
FOR_ALL_SECONDS = 1.0
"""In which a scheduler that has signalled the supervisor has signalled every host."""
END_SECONDS = 15.0
"""That Slurm may take to say that a step is over which was killed."""


class SlurmHosts:
    """The hosts of one attempt. See `MeshObserver` for what they say."""

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
        self._loop = loop
        self._children = children
        self._on_ended = on_ended
        self._secret = os.urandom(contract.SECRET_BYTES)
        self._steps: dict[str, int] = {}
        """Host -> the process of its srun."""
        self._nodes: dict[str, Node] = {}
        self._lines: dict[str, KeptLine] = {}
        self._mesh: MeshLeader | None = None
        self._door: socket.socket
        """Where hosts find this process, open as long as any of them may come."""
        self._first_at = ""
        """Where they find the first of them; empty until it has said so."""
        self._left: list[tuple[str, list[str]]] = []
        """On which node a host was killed, and which of its folders are still there."""
        self._awaits_first = False
        self._is_stopping = False

    @property
    def first_host_at(self) -> str:
        return self._first_at

    def line_to(self, host: str, on_failed: OnAttemptFailed, on_silence: Callable[[], None]) -> HostsLine:
        self._lines[host] = line = KeptLine(self, host, on_failed, on_silence)
        return line

    def start(self) -> None:
        try:
            nodes = self._allocation.nodes
        except (BackendError, OSError) as error:
            raise NotStarted(Verdict(Kind.PLATFORM, f"the nodes of the job are not known: {error}")) from None
        hosts = self._plan.hosts
        if len(nodes) < len(hosts):
            what = f"the job has {len(hosts)} hosts, but Slurm has granted {len(nodes)} nodes"
            raise NotStarted(Verdict(Kind.PLATFORM, f"{what}; do not change --nodes of the script"))
        self._nodes = {host.name: node for host, node in zip(hosts, nodes, strict=False)}
        member = Member(words.PLATFORM, tuple(host.name for host in hosts), self._secret)
        self._door = socket.create_server((nodes[0].address, 0), backlog=len(hosts) + 128)
        self._mesh = MeshLeader(self._loop, member, self, self._door.dup(), MISSED_BEATS)
        for host in hosts:
            self._start_host(host, self._attempt)

    def end(self, host: str) -> None:
        if host in self._steps:
            # What is frozen does not end with its srun.
            with contextlib.suppress(BackendError):  # its node may be gone
                queue.kill_step(self._allocation.number, host)
            signal_group(self._steps[host], signal.SIGKILL)
            self._loop.run_until(lambda: host not in self._steps, END_SECONDS)

    def start_again(self, host: str, attempt: int, first_host_at: str) -> None:
        assert self._mesh is not None
        if host == self._first:
            self._first_at, self._awaits_first = "", True
        elif not self._awaits_first:
            self._first_at = first_host_at
        if self._is_down(self._nodes[host]):
            self._ask_for_other_nodes(host)
            return
        self._mesh.expect([host], self._door.dup())
        (again,) = (each for each in self._plan.hosts if each.name == host)
        self._start_host(again, attempt)

    def signal(self, signum: int) -> None:
        if signum == signal.SIGKILL:
            for pid in self._steps.values():
                signal_group(pid, signum)
        elif self._allocation.is_interrupted:
            self._loop.after(FOR_ALL_SECONDS, self._stop)
        else:
            self._stop()

    def close(self) -> None:
        self.signal(signal.SIGKILL)
        self._loop.run_until(lambda: not self._steps, END_SECONDS)
        if self._mesh is not None:
            self._mesh.close()
            self._door.close()

    def wait_until_gone(self) -> None:
        """Remove what hosts that were killed have left on their nodes."""
        left, self._left = self._left, []
        waiting = {
            self._children.start(
                (*SRUN, f"--nodelist={node}", "rm", "-rf", "--", *folders), os.environ, lambda code: None
            )
            for node, folders in left
        }
        self._loop.run_until(lambda: not waiting & self._children.pids, END_SECONDS)

    # What hosts are told, and say.

    def tell(self, host: str, *fields: str) -> None:
        """Send a message to a host that is there."""
        if self._mesh is not None:
            self._mesh.send(host, *fields)

    def tell_again(self, host: str) -> None:
        """Have a host begin again as soon as it is known where the first one is."""
        if self._first_at or host == self._first:
            self.tell(host, words.AGAIN, self._first_at)
        else:
            self._lines[host].waits_for_first = True

    @property
    def _first(self) -> str:
        return self._plan.hosts[0].name

    def _stop(self) -> None:
        self._is_stopping = True
        for host in self._steps:
            self.tell(host, words.STOP)

    def on_joined(self, host: str) -> None:
        if host in self._lines:
            self._lines[host].is_up = True
        if self._first_at and host != self._first:
            self.tell(host, words.JOIN, self._first_at)
        if self._is_stopping:
            self.tell(host, words.STOP)

    def on_message(self, host: str, message: list[str]) -> None:
        kind, *fields = message
        if kind == words.LISTENS:
            self._first_listens(fields[0])
        elif kind == words.FAILED and host in self._lines:
            verdict, address, *lost = fields
            self._lines[host].on_failed(Verdict.from_json(verdict), address, tuple(lost))

    def on_lost(self, host: str, silent: bool) -> None:
        """A connection that was closed says nothing: the step ends, too."""
        if host in self._lines:
            self._lines[host].is_up = False
            if silent and not self._lines[host].is_closed:
                self._lines[host].on_silence()

    def _first_listens(self, address: str) -> None:
        self._first_at, self._awaits_first = address, False
        for host in self._steps.keys() - {self._first}:
            line = self._lines.get(host)
            if line is not None and line.waits_for_first:
                line.waits_for_first = False
                self.tell(host, words.AGAIN, address)
            else:
                self.tell(host, words.JOIN, address)

    def _is_down(self, node: Node) -> bool:
        with contextlib.suppress(BackendError):
            (known,) = queue.node_facts(node.name)
            return any(word in known.get("State", "") for word in ("DOWN", "FAIL", "NOT_RESPONDING", "*"))
        return False

    def _ask_for_other_nodes(self, host: str) -> None:
        """Have Slurm start the job again, on nodes that are there; it interrupts this process for that."""
        try:
            queue.ask("scontrol", "requeue", str(self._allocation.number))
        except BackendError as error:
            what = f"the node of {host}, {self._nodes[host].name}, is down, and Slurm gives no other"
            raise NotStarted(Verdict(Kind.HOST_LOST, f"{what}: {error}", host)) from None

    # How they are started.

    def _start_host(self, host: HostPlan, attempt: int) -> None:
        layout = Layout(str(self._folder.hosts / host.base_dir))
        node = self._nodes[host.name]
        base_directory.write(self._plan, host.name, layout, machine.interface_for(node.address, "eth0"))
        base_directory.write_secret(layout, self._secret)
        base_directory.write_environment(layout, self._plan.environment)
        base_directory.link_channels(self._plan, self._folder, host.name, Path(layout.data))
        make_folder(self._folder.attempt(self._attempt))
        log = self._folder.attempt(self._attempt) / f"{host.name}.log"
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        argv = (*SRUN, f"--job-name={host.name}", f"--nodelist={node.name}", *host.argv)
        try:
            pid = self._children.start(
                argv, self._environment(host, attempt), lambda code: self._ended(host.name, code), fd, fd
            )
        finally:
            os.close(fd)
        self._steps[host.name] = pid

    def _environment(self, host: HostPlan, attempt: int) -> Mapping[str, str]:
        machines = Counter(node.machine for node in self._nodes.values())
        addresses = {name: node.address for name, node in self._nodes.items()}
        return {
            **self._allocation.environment,
            **host.environment,
            contract.BASE_DIR_VARIABLE: str(self._folder.hosts / host.base_dir),
            contract.OVERLAY_DIR: str(self._folder.overlay(self._attempt)),
            contract.HOSTS_PER_MACHINE: str(machines[self._nodes[host.name].machine]),
            contract.HOST_ADDRESSES: json.dumps(addresses),
            contract.PLATFORM_ADDRESS: text_of(self._door),
            contract.STOP_TIMEOUT: str(self._plan.stop_timeout),
            contract.JOB_NAME_VARIABLE: self._plan.job_name,
            **variables_of_attempt(self._plan, attempt),
        }

    def _ended(self, host: str, code: int) -> None:
        del self._steps[host]
        with contextlib.suppress(KeyError):
            self._lines[host].is_up = False
        code = _code_of_task(code)
        if code < 0:
            with contextlib.suppress(OSError):  # of a host that had not begun
                folders = Path(Layout(str(self._folder.host(host))).temporary_folders).read_text(encoding="utf-8")
                self._left.append((self._nodes[host].name, folders.splitlines()))
        self._on_ended(host, code)


def _code_of_task(code: int) -> int:
    """The exit code of a step's task, or minus a signal's number; srun says 128 + N of one that a signal ended."""
    return 128 - code if code > 128 and code != EXIT_STOPPED else code
