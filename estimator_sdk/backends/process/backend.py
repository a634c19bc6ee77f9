"""The embedded default: every host is a process tree of this machine, with a base directory of its own.

No Docker, no account, no privileges. The hosts are the same toolkit that runs in a container, told by
their environment where their base directory is and at which address of the loopback network they are.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import estimator_container
from estimator_container.contract import names as contract
from estimator_container.contract.names import Layout
from estimator_container.runtime import private_folder
from estimator_container.runtime.children import Children, descendants, kill_descendants_but
from estimator_container.runtime.errors import ConfigurationError
from estimator_container.runtime.loop import Loop

from ...errors import InvalidArgument
from ...plan.plan import DEFAULT_CHECKPOINTS, HostPlan, Plan
from ...values.home import HOME_VARIABLE, JobFolder, home, make_folder
from ..port import Finding, findings
from ..supervised.backend import Supervised
from ..supervised.supervisor import base_directory
from ..supervised.supervisor.hosts import Hosts, OnHostEnded
from ..supervised.supervisor.hosts_line import HostsLine, LineHere, OnAttemptFailed
from ..supervised.supervisor.policy import variables_of_attempt
from . import CAPABILITIES

if TYPE_CHECKING:
    from ...spec.job_document import JobDocument
    from ..supervised.job import LocalJob

TOOLKIT = str(Path(estimator_container.__file__).parent)
INTERFACE = "lo"


class ProcessBackend(Supervised):
    """Runs the hosts of a job as processes."""

    name = "process"
    capabilities = CAPABILITIES

    def plan(self, spec: JobDocument) -> Plan:
        """Resolve a job for this machine. Raises InvalidArgument for what processes cannot do."""
        # Not for the supervisor, which loads this module to start what was planned.
        from ...plan import distributions, inheritance, kernel_limits
        from ...plan import local as local_plan
        from ...spec import instances

        if not sys.platform.startswith("linux"):
            raise InvalidArgument("backend", f"backend 'process' needs Linux, and this is {sys.platform}")
        _check_places()
        plan = local_plan.base(spec, self.name, _host)
        if plan.checkpoint_path != DEFAULT_CHECKPOINTS:
            raise InvalidArgument(
                "checkpoint_local_path",
                f"checkpoint_local_path is {plan.checkpoint_path}, a path in a container, but backend 'process' has "
                "no containers: leave it out, and let the script write to SM_CHECKPOINT_DIR",
            )
        distributions.refuse_others(plan)
        plan, gpus = local_plan.shared_gpus(plan, {**os.environ, **plan.environment})
        plan = distributions.distributed(plan, gpus)
        overlay = JobFolder.for_job(plan.job_name).overlay(1)
        plan = inheritance.for_processes(local_plan.with_command(plan, sys.executable, overlay))
        if instances.gpus(plan.instance_type) is None:
            from ...plan import code_imports

            code_imports.check_cuda(plan)
        base = str(JobFolder.for_job(plan.job_name).hosts / plan.hosts[-1].base_dir)
        return kernel_limits.check_processes(
            plan, base, plan.inherited_from(os.environ), str(overlay / "bin" / "python")
        )

    def start(self, plan: Plan) -> LocalJob:
        """Start the plan's hosts under a supervisor, and return at once."""
        from ...code import store as code_store
        from ..supervised.client import start

        code_store.upload(plan.code, plan.code_uri)
        return start(plan)

    def check(self) -> Iterable[Finding]:
        """Look for what hosts need that are processes: every job needs it."""
        from .check import CHECKS

        return findings(None, CHECKS)

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
        return ProcessHosts(plan, folder, attempt, loop, children, on_ended)


def _check_places() -> None:
    """Raises InvalidArgument where the user's settings leave no place for what hosts need."""
    try:
        private_folder.base()
    except ConfigurationError as error:
        raise InvalidArgument("TMPDIR", str(error)) from None
    if os.pathsep in str(home()):
        raise InvalidArgument(
            HOME_VARIABLE,
            f"backend 'process' cannot run jobs below {home()}: the script's code would be on PYTHONPATH, which "
            f"cannot hold a path with {os.pathsep!r}; set {HOME_VARIABLE} to a folder without one",
        )


def _host(name: str, index: int, hosts: int) -> HostPlan:
    return HostPlan(
        name=name,
        # All of 127.0.0.0/8 is this machine (RFC 1122, 3.2.1.3).
        address=f"127.0.{(index + 1) // 256}.{(index + 1) % 256}",
        base_dir=name,
        argv=(sys.executable, "-I", "-S", TOOLKIT, "train"),
        environment={contract.HOSTS_PER_MACHINE: str(hosts), contract.CONSOLE: "off"},
    )


class ProcessHosts:
    """The process trees of one attempt."""

    def __init__(
        self, plan: Plan, folder: JobFolder, attempt: int, loop: Loop, children: Children, on_ended: OnHostEnded
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._attempt = attempt
        self._loop = loop
        self._children = children
        self._on_ended = on_ended
        self._pids: dict[str, int] = {}
        self._secret = os.urandom(contract.SECRET_BYTES)
        self._addresses = {host.name: host.address for host in plan.hosts}
        self._private_folders: list[str] = []
        self._lifeline: tuple[int, int] | None = None
        self._door: socket.socket | None = None
        """What keeps the port at which the first host listens for the others, as long as there are hosts."""

    @property
    def first_host_at(self) -> str:
        first = self._plan.hosts[0]
        assert self._door is not None
        return f"{first.address}:{self._door.getsockname()[1]}"

    def line_to(self, host: str, on_failed: OnAttemptFailed, on_silence: Callable[[], None]) -> HostsLine:
        return LineHere(self._loop, Layout(str(self._folder.host(host))), on_failed, on_silence, comes_soon=True)

    def wait_for_machines(self) -> None:
        """There is this one."""

    def start(self) -> None:
        for host in self._plan.hosts:
            self._write_base_directory(host)
        # Every host inherits the reading end; when this process is gone, all of them see it.
        self._lifeline = os.pipe()
        first, *others = self._plan.hosts
        if others:  # which the first one listens for
            self._door = _bound(first.address)
            self._addresses[first.name] = self.first_host_at
        for host in self._plan.hosts:
            self._start_host(host, self._attempt)

    def end(self, host: str) -> None:
        if host in self._pids:
            for pid in (*descendants(self._pids[host]), self._pids[host]):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._loop.run_until(lambda: host not in self._pids)
        kill_descendants_but(self._children.pids)  # what it left came to the supervisor

    def start_again(self, host: str, attempt: int, first_host_at: str) -> None:
        self._addresses[self._plan.hosts[0].name] = first_host_at
        (again,) = (each for each in self._plan.hosts if each.name == host)
        self._write_base_directory(again)
        self._start_host(again, attempt)

    def signal(self, signum: int) -> None:
        for pid in self._pids.values():
            os.kill(pid, signum)  # and not its group, in which its children are until they have one of their own

    def close(self) -> None:
        # What a killed toolkit left came to the supervisor, which has another child for the checkpoints.
        kill_descendants_but(self._children.pids - set(self._pids.values()))
        if self._lifeline is not None:
            for fd in self._lifeline:
                os.close(fd)
            self._lifeline = None
        if self._door is not None:
            self._door.close()
        for path in self._private_folders:
            shutil.rmtree(path, ignore_errors=True)

    def wait_until_gone(self) -> None:
        """`close` leaves nothing to wait for."""

    def _write_base_directory(self, host: HostPlan) -> None:
        layout = self._layout(host)
        base_directory.write(self._plan, host.name, layout, INTERFACE)
        base_directory.write_secret(layout, self._secret)
        base_directory.link_channels(self._plan, self._folder, host.name, Path(layout.data))

    def _start_host(self, host: HostPlan, attempt: int) -> None:
        assert self._lifeline is not None
        with contextlib.ExitStack() as until_started:
            inherited = {contract.LIFELINE_FD: self._lifeline[0]}
            if self._door is not None and host is self._plan.hosts[0]:
                sock = until_started.enter_context(_bound(*self._door.getsockname()))
                sock.listen(128)
                inherited[contract.LISTEN_FD] = sock.fileno()
            self._start_with(host, attempt, inherited)

    def _start_with(self, host: HostPlan, attempt: int, inherited: dict[str, int]) -> None:
        """`inherited` are descriptors that the host gets, under the variables that name them."""
        self._private_folders.append(scratch := private_folder.make(private_folder.base()))
        self._private_folders.append(shared_memory := private_folder.make_for_memory(scratch))
        env = {
            **self._plan.inherited_from(os.environ),
            **self._plan.environment,
            **host.environment,
            contract.BASE_DIR_VARIABLE: self._layout(host).base,
            contract.SCRATCH_DIR: scratch,
            contract.SHARED_MEMORY_DIR: shared_memory,
            contract.OVERLAY_DIR: str(self._folder.overlay(self._attempt)),
            **variables_of_attempt(self._plan, attempt),
            contract.HOST_ADDRESSES: json.dumps(self._addresses),
            **{variable: str(fd) for variable, fd in inherited.items()},
            contract.STOP_TIMEOUT: str(self._plan.stop_timeout),
            contract.JOB_NAME_VARIABLE: self._plan.job_name,
        }
        make_folder(self._folder.attempt(self._attempt))
        log = os.open(
            self._folder.attempt(self._attempt) / f"{host.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        try:
            for fd in inherited.values():
                os.set_inheritable(fd, True)
            pid = self._children.start(host.argv, env, lambda code: self._ended(host.name, code), log, log)
        finally:
            for fd in inherited.values():
                os.set_inheritable(fd, False)
            os.close(log)
        self._pids[host.name] = pid

    def _ended(self, host: str, code: int) -> None:
        del self._pids[host]
        self._on_ended(host, code)

    def _layout(self, host: HostPlan) -> Layout:
        return Layout(str(self._folder.hosts / host.base_dir))


def _bound(address: str, port: int = 0) -> socket.socket:
    """A socket that keeps a port, and lets another one that is made here listen at it: see `mesh.endpoint.Endpoint`."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    return sock
