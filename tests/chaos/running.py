"""The processes of a running local job, found from the outside: by their parents, their commands and their environment.

Nothing of the job's own state is read but its folder and its backend, so what is found is what is there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from estimator_sdk import Job
from tests.ssh import seen

WRAPPER = b"estimator_container/ranks/wrapper.py"
SUPERVISORS = (b"estimator_sdk/backends/supervised", b"estimator_sdk/backends/slurm")
JOB_LABEL = "estimator.job"


class NotThere(Exception):
    """What was looked for does not run, not yet or no more."""


@dataclass(frozen=True)
class Process:
    """One line of the table of processes."""

    pid: int
    parent: int
    argv: tuple[bytes, ...]

    @property
    def program(self) -> str:
        return Path(os.fsdecode(self.argv[0])).name

    def runs(self, path: bytes) -> bool:
        """Whether a word of its command is that path, or ends with it."""
        return any(word.endswith(path) for word in self.argv)

    def variable(self, name: str) -> str | None:
        """A variable of the environment that it was started with; None without it, or if it has just ended."""
        try:
            environ = Path(f"/proc/{self.pid}/environ").read_bytes()
        except OSError:
            return None
        prefix = f"{name}=".encode()
        found = [each[len(prefix) :] for each in environ.split(b"\0") if each.startswith(prefix)]
        return found[0].decode("utf-8", "replace") if found else None


@dataclass(frozen=True)
class RunningRank:
    """A script that runs, and the wrapper around it."""

    host: str
    number: int | None
    """None where there is no world."""
    wrapper: int
    pid: int


class RunningJob:
    """A job that may be struck: every look is at what runs at that moment."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.backend = job.backend

    @property
    def leader(self) -> str:
        """The first host by name leads."""
        return "algo-1"

    def supervisor(self) -> int:
        """The pid of the job's supervisor. Raises NotThere."""
        if self.backend == "ssh":
            return _the_one(seen.supervisors(self.job), f"the supervisor of {self.job.name}")
        folder = os.fsencode(self.job.folder)
        found = [each.pid for each in table().values() if any(map(each.runs, SUPERVISORS)) and folder in each.argv]
        return _the_one(found, f"the supervisor of {self.job.name}")

    def containers(self) -> dict[str, Any]:
        """Host -> its container, as the Docker SDK gives it."""
        chosen = {"label": f"{JOB_LABEL}={self.job.name}", "status": "running"}
        found = engine().containers.list(filters=chosen, ignore_removed=True)
        return {each.attrs["Config"]["Hostname"]: each for each in found}

    def container(self, host: str) -> Any:
        """The container of a host. Raises NotThere."""
        return _the_one([each for name, each in self.containers().items() if name == host], f"the container of {host}")

    def toolkits(self) -> dict[str, int]:
        """Host -> the pid of its first process, whose end is the host's end."""
        if self.backend == "docker":
            return {host: each.attrs["State"]["Pid"] for host, each in self.containers().items()}
        if self.backend == "ssh":
            return {host: pid for host, (pid, _) in seen.toolkits(self.job).items()}
        running = {each.pid: each for each in table().values() if self._is_toolkit(each)}
        return {self._folder(running[pid]).name: pid for pid in seen.without_forks(running)}

    def _is_toolkit(self, each: Process) -> bool:
        runs = each.argv[-1:] == (b"train",) and each.runs(b"estimator_container") and each.program != "srun"
        return runs and self.job.folder in self._folder(each).parents

    @staticmethod
    def _folder(toolkit: Process) -> Path:
        return Path(toolkit.variable("SAGEMAKER_BASE_DIR") or "/")

    def toolkit(self, host: str) -> int:
        """Raises NotThere."""
        return _the_one([pid for name, pid in self.toolkits().items() if name == host], f"the toolkit of {host}")

    def ranks(self) -> list[RunningRank]:
        """The scripts that run now on all hosts."""
        processes = table()
        found = []
        for host, toolkit in self.toolkits().items():
            tree = below(toolkit, processes)
            # mpirun has the command of the wrappers at the end of its own.
            wrappers = {each.pid for each in tree if each.runs(WRAPPER) and each.program != "mpirun"}
            # A child that has not become the script yet has the command of its wrapper still.
            for each in (one for one in tree if one.parent in wrappers):
                number = processes[each.parent].variable("OMPI_COMM_WORLD_RANK") or each.variable("RANK")
                found.append(RunningRank(host, None if number is None else int(number), each.parent, each.pid))
        return found

    def rank(self, host: str, number: int | None) -> RunningRank:
        """A rank of the world, or the script of a host where there is none. Raises NotThere."""
        what = f"the script on {host}" if number is None else f"rank {number}"
        chosen = [each for each in self.ranks() if each.number == number and each.host == host]
        return _the_one(chosen[:1], what)

    def script(self, host: str, number: int | None) -> int:
        """The pid of a rank that has begun its script. Raises NotThere."""
        pid = self.rank(host, number).pid
        found = table().get(pid)
        if found is None or found.runs(WRAPPER):
            raise NotThere(f"rank {number} has not begun its script")
        return pid

    def program(self, host: str, name: str) -> int:
        """The pid of a program of that name on a host, such as `mpirun`. Raises NotThere."""
        found = [each.pid for each in below(self.toolkit(host), table()) if each.program == name]
        return _the_one(found, f"{name} on {host}")


@cache
def engine() -> Any:
    """The Docker engine of this machine: one client for all, or each would keep connections open."""
    from estimator_sdk.backends.docker.engine import connect

    return connect()


def table() -> dict[int, Process]:
    """All processes of this machine that live, those of containers too."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            argv = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        except OSError:
            continue
        if state not in (b"Z", b"X"):
            found[int(folder.name)] = Process(int(folder.name), int(parent), tuple(argv))
    return found


def below(root: int, processes: dict[int, Process]) -> list[Process]:
    """The processes below one, parents first."""
    children: dict[int, list[Process]] = {}
    for each in processes.values():
        children.setdefault(each.parent, []).append(each)
    found, queue = [], [root]
    while queue:
        there = children.get(queue.pop(0), [])
        found += there
        queue += [each.pid for each in there]
    return found


def _the_one(found: list[Any], what: str) -> Any:
    if len(found) != 1:
        raise NotThere(f"{what} does not run")
    return found[0]
