"""Faults to aim at a running local job, and what a good verdict says after each.

`python -m tests.chaos JOB FAULT` does it by hand. Those that touch a container's network need root on this machine, and
`nsenter`, `iptables` and `tc`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .running import JOB_LABEL, NotThere, RunningJob, below, engine, table

Need = Literal["world", "hosts", "docker", "memory"]
"""What a job must have: an MPI world, more than one host, containers, a limit on memory."""

HICCUP_SECONDS = 0.5  # shorter than any patience with a process that is only slow
SLOW_RATE = "512kbit"
HOARDER = Path(__file__).with_name("hoarder.py")


@dataclass(frozen=True)
class Shape:
    """What of a job decides which faults can strike it."""

    backend: str
    hosts: int
    processes: int | None
    """A host; None without a world."""

    @property
    def ranks(self) -> range:
        return range(self.hosts * (self.processes or 1))

    def host_of(self, rank: int) -> str:
        return f"algo-{rank // (self.processes or 1) + 1}"


@dataclass(frozen=True)
class Target:
    """What a fault is aimed at: one rank, and the host that it is on."""

    shape: Shape
    number: int

    @property
    def host(self) -> str:
        return self.shape.host_of(self.number)

    @property
    def rank(self) -> int | None:
        """As verdicts name it."""
        return self.number if self.shape.processes else None


@dataclass(frozen=True)
class Truth:
    """What is so after a fault, and therefore what a right verdict says."""

    kinds: tuple[str, ...]
    """Any of these; none where the job must come to its end as if nothing had been."""
    hosts: frozenset[str | None] = frozenset({None})
    ranks: frozenset[int | None] = frozenset({None})

    def __str__(self) -> str:
        if not self.kinds:
            return "the job must go on and complete"
        host = " or ".join(sorted(str(each) for each in self.hosts if each)) or "no host"
        rank = " or ".join(sorted(str(each) for each in self.ranks if each is not None))
        return f"{' or '.join(self.kinds)}, {host}, {f'rank {rank}' if rank else 'no rank'}"


GOES_ON = Truth(())


def of_rank(target: Target, *kinds: str) -> Truth:
    return Truth(kinds, frozenset({target.host}), frozenset({target.rank}))


def of_host(host: str, *kinds: str) -> Truth:
    return Truth(kinds, frozenset({host}))


@dataclass(frozen=True)
class Fault:
    """One way to hurt a job."""

    says: str
    strike: Callable[[RunningJob, Target], Truth]
    """Does it, and returns what is so now. Raises NotThere if that does not run, and nothing is done."""
    needs: frozenset[Need] = frozenset()
    heal: Callable[[RunningJob, Target], None] | None = None
    """Undoes it, for a job that has not noticed; nothing happens where nothing is left."""
    once_up: bool = False
    """It is noticed by silence, which counts once the ranks run: until then a deadline of minutes must do."""

    def fits(self, shape: Shape, limited: bool = False) -> bool:
        """Whether it can strike such a job; `limited` says that its hosts have a limit on memory."""
        has: dict[Need, bool] = {
            "world": shape.processes is not None,
            "hosts": shape.hosts > 1,
            "docker": shape.backend == "docker",
            "memory": shape.backend == "docker" and limited,
        }
        return all(has[need] for need in self.needs)


# Ranks.


def signal_rank(signum: int) -> Callable[[RunningJob, Target], Truth]:
    def strike(running: RunningJob, target: Target) -> Truth:
        _signal(running.rank(target.host, target.rank).pid, signum)
        return of_rank(target, "signal")

    return strike


def kill_wrapper(running: RunningJob, target: Target) -> Truth:
    _signal(running.rank(target.host, target.rank).wrapper, signal.SIGKILL)
    return of_rank(target, "signal", "toolkit")


def freeze_rank(running: RunningJob, target: Target) -> Truth:
    _signal(running.script(target.host, target.rank), signal.SIGSTOP)
    return of_rank(target, "frozen")


def thaw_rank(running: RunningJob, target: Target) -> None:
    with contextlib.suppress(NotThere):
        _signal(running.rank(target.host, target.rank).pid, signal.SIGCONT)


def hiccup_rank(running: RunningJob, target: Target) -> Truth:
    pid = running.script(target.host, target.rank)
    _signal(pid, signal.SIGSTOP)
    threading.Event().wait(HICCUP_SECONDS)
    _signal(pid, signal.SIGCONT)
    return GOES_ON


# Hosts.


def kill_host(running: RunningJob, target: Target) -> Truth:
    if running.backend == "docker":
        _ask_engine(running.container(target.host).kill, "SIGKILL")
    else:
        _signal(running.toolkit(target.host), signal.SIGKILL)
    return of_host(target.host, "host_lost")


def kill_leader(running: RunningJob, target: Target) -> Truth:
    return kill_host(running, Target(target.shape, 0))


def freeze_host(running: RunningJob, target: Target) -> Truth:
    if running.backend == "docker":
        _ask_engine(running.container(target.host).pause)
    else:
        _signal_tree(running.toolkit(target.host), signal.SIGSTOP)
    return of_host(target.host, "host_lost")


def thaw_host(running: RunningJob, target: Target) -> None:
    with contextlib.suppress(NotThere):
        if running.backend == "docker":
            _ask_engine(running.container(target.host).unpause)
        else:
            _signal_tree(running.toolkit(target.host), signal.SIGCONT)


# Programs of the platform.


def kill_mpirun(running: RunningJob, target: Target) -> Truth:
    _signal(running.program(running.leader, "mpirun"), signal.SIGKILL)
    return of_host(running.leader, "mpi")


def kill_daemon(running: RunningJob, target: Target) -> Truth:
    host = target.host if target.host != running.leader else "algo-2"  # the leader has none: mpirun is its daemon
    _signal(running.program(host, "orted"), signal.SIGKILL)
    return of_host(host, "mpi")


def kill_supervisor(running: RunningJob, target: Target) -> Truth:
    _signal(running.supervisor(), signal.SIGKILL)
    return Truth(("platform",))


# Networks of containers.


def cut_host(running: RunningJob, target: Target) -> Truth:
    """No packet goes in or out, and nobody is told."""
    pid = running.toolkit(target.host)
    _in_network(pid, "iptables", "-I", "INPUT", "-i", "eth0", "-j", "DROP")
    _in_network(pid, "iptables", "-I", "OUTPUT", "-o", "eth0", "-j", "DROP")
    return of_host(target.host, "host_lost")


def restore_host(running: RunningJob, target: Target) -> None:
    with contextlib.suppress(NotThere):
        _in_network(running.toolkit(target.host), "iptables", "-F")


def disconnect_host(running: RunningJob, target: Target) -> Truth:
    """The engine takes the interface away; connections that are open hear nothing of it."""
    network, container = _network(running), running.container(target.host)
    _ask_engine(network.disconnect, container)
    return of_host(target.host, "host_lost")


def reconnect_host(running: RunningJob, target: Target) -> None:
    with contextlib.suppress(NotThere):
        _ask_engine(_network(running).connect, running.container(target.host))


def slow_host(running: RunningJob, target: Target) -> Truth:
    pid = running.toolkit(target.host)
    shape = ("root", "tbf", "rate", SLOW_RATE, "burst", "16kbit", "latency", "400ms")
    _in_network(pid, "tc", "qdisc", "replace", "dev", "eth0", *shape)
    return GOES_ON


def quicken_host(running: RunningJob, target: Target) -> None:
    with contextlib.suppress(NotThere):
        _in_network(running.toolkit(target.host), "tc", "qdisc", "del", "dev", "eth0", "root")


# Memory.


def fill_memory(running: RunningJob, target: Target) -> Truth:
    """Another process of the container takes what is left of its memory, and the kernel ends the rank."""
    pid = running.rank(target.host, target.rank).pid
    done = subprocess.run([sys.executable, "-I", "-S", str(HOARDER), str(pid)], check=False, timeout=60)
    if done.returncode not in (0, -signal.SIGKILL):  # the kernel may take the hoarder too, once the rank is gone
        done.check_returncode()
    return of_rank(target, "out_of_memory")


FAULTS: Mapping[str, Fault] = {
    "kill-rank": Fault("SIGKILL to a rank", signal_rank(signal.SIGKILL)),
    "crash-rank": Fault("SIGSEGV to a rank", signal_rank(signal.SIGSEGV)),
    "abort-rank": Fault("SIGABRT to a rank", signal_rank(signal.SIGABRT)),
    "terminate-rank": Fault("SIGTERM to a rank that does not catch it", signal_rank(signal.SIGTERM)),
    "kill-wrapper": Fault("SIGKILL to the process that holds a rank's pipes", kill_wrapper),
    "freeze-rank": Fault("SIGSTOP to a rank", freeze_rank, heal=thaw_rank),
    "hiccup-rank": Fault(f"SIGSTOP to a rank for {HICCUP_SECONDS:g} s", hiccup_rank, heal=thaw_rank),
    "kill-host": Fault("a power cut: SIGKILL to a host's toolkit, or `docker kill`", kill_host),
    "kill-leader": Fault("the same for the first host", kill_leader),
    "freeze-host": Fault(
        "SIGSTOP to all processes of a host, or `docker pause`", freeze_host, frozenset({"hosts"}), thaw_host, True
    ),
    "kill-mpirun": Fault("SIGKILL to mpirun", kill_mpirun, frozenset({"world"})),
    "kill-daemon": Fault("SIGKILL to a host's MPI daemon", kill_daemon, frozenset({"world", "hosts"})),
    "kill-supervisor": Fault("SIGKILL to the supervisor of the job", kill_supervisor),
    "cut-host": Fault("drop all packets of a host", cut_host, frozenset({"docker", "hosts"}), restore_host, True),
    "disconnect-host": Fault(
        "take a host off its network", disconnect_host, frozenset({"docker", "hosts"}), reconnect_host, True
    ),
    "slow-host": Fault(
        f"give a host a network of {SLOW_RATE}/s", slow_host, frozenset({"docker", "hosts"}), quicken_host
    ),
    "fill-memory": Fault("use up a host's memory", fill_memory, frozenset({"memory"})),
}


def _signal(pid: int, signum: int) -> None:
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        raise NotThere(f"process {pid} has ended") from None


def _signal_tree(root: int, signum: int) -> None:
    """The root first, so that it starts no more; then what is below it, until a look finds nobody new."""
    _signal(root, signum)
    told: set[int] = set()
    while found := {each.pid for each in below(root, table())} - told:
        for pid in found:
            with contextlib.suppress(NotThere):
                _signal(pid, signum)
        told |= found


def _in_network(pid: int, *command: str) -> None:
    """Run a program in the network namespace of a process. Raises NotThere if that has ended meanwhile."""
    done = subprocess.run(["nsenter", "-t", str(pid), "-n", *command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if not Path(f"/proc/{pid}").exists():
            raise NotThere(f"process {pid} has ended")
        raise RuntimeError(f"{' '.join(command)} failed in the network of process {pid}: {done.stderr.strip()}")


def _network(running: RunningJob) -> Any:
    found = engine().networks.list(filters={"label": f"{JOB_LABEL}={running.job.name}"})
    if not found:
        raise NotThere(f"the network of {running.job.name} is not there")
    return found[0]


def _ask_engine(call: Callable[..., object], *arguments: object) -> None:
    """A call about a container that may end at this moment. Raises NotThere if it has."""
    import docker

    try:
        call(*arguments)
    except docker.errors.APIError as error:
        if error.status_code not in (403, 404, 409, 500):
            raise
        raise NotThere(str(error.explanation)) from None
