"""A real Slurm of twelve nodes on this one machine, all of whose state is in a folder of its own.

Its nodes share the machine's file system, which stands for the shared one of a cluster. It ends with the process that
started it. Several test processes share one, which this starts for as long as a command runs:

    python -m tests.slurm.cluster COMMAND…
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from estimator_container.runtime.children import descendants

from estimator_sdk.backends.ssh.on_host.keeping.leftovers import remove_temporary_folders
from tests.shared_engine import SharedEngine, run_with
from tests.slurm import configuration
from tests.slurm.configuration import NODES
from tests.waiting import kill_all

SHARED = "TEST_SLURM"
"""The variable that names the folder of the cluster that runs already.

Not SLURM_CONF itself: other suites test what a job does with the variables that it inherits.
"""
START_SECONDS = 300
END_SECONDS = 60
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo")


class DidNotStart(Exception):
    """The cluster could not be started; the text has what its daemons said."""


@dataclass
class Cluster:
    """A cluster that runs."""

    folder: Path
    nodes: tuple[str, ...] = NODES
    slurmd_timeout: int = 300
    """Seconds after which Slurm itself notices that a node is gone; this is its own default."""
    daemons: dict[str, subprocess.Popen] = field(default_factory=dict)
    """Name of a node, `slurmctld` or `munged` -> its daemon; empty where another process started the cluster."""

    def environment(self) -> dict[str, str]:
        """The variables by which Slurm's programs find the cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command: str) -> str:
        """What one of Slurm's programs prints; it must succeed."""
        environment = {**clean_environment(), **self.environment()}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=180)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def start_node(self, name: str) -> None:
        """Start a node's daemon, also again after `kill_node`; Slurm takes a moment to see it."""
        self.daemons[name] = self._daemon("slurmd", "-D", "-N", name, log=name)

    def kill_node(self, name: str) -> None:
        """End a node as a power cut would: its daemon and all that runs on it."""
        self.daemons[name].kill()
        self.daemons.pop(name).wait()
        kill_all(self.processes(name))

    def processes(self, node: str | None = None) -> set[int]:
        """The processes of jobs on a node, or all that know of the cluster, but for its daemons."""
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._is_step(process, node) or self._is_of_job(process, node):
                    found |= {int(process.name), *descendants(int(process.name))}
        return found - {daemon.pid for daemon in self.daemons.values()} - {os.getpid()}

    def _is_step(self, process: Path, node: str | None) -> bool:
        """Whether it watches the processes of a step, which it does in the folder of the daemon that it comes from."""
        is_one = (process / "cmdline").read_bytes().startswith(b"slurmstepd")
        if not is_one or (process / "cwd").readlink() != self.folder:
            return False
        log = self.folder / f"{node}.log"
        return node is None or any(descriptor.readlink() == log for descriptor in (process / "fd").iterdir())

    def _is_of_job(self, process: Path, node: str | None) -> bool:
        variables = (process / "environ").read_bytes().split(b"\0")
        if node is not None and f"SLURMD_NODENAME={node}".encode() not in variables:
            return False
        told = {"SLURM_CLUSTER_NAME": self.folder.name, **self.environment()}
        return any(f"{name}={value}".encode() in variables for name, value in told.items())

    def _daemon(self, *command: str, log: str) -> subprocess.Popen:
        """A daemon in a session of its own, so that Ctrl-C is for the command alone."""
        with (self.folder / f"{log}.out").open("ab") as output:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                env={**clean_environment(), **self.environment()},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )


@contextlib.contextmanager
def cluster(nodes: tuple[str, ...] = NODES, slurmd_timeout: int = 300) -> Iterator[Cluster]:
    """A cluster of the caller's own, all of whose nodes are idle; nothing is left of it at the end of the block.

    Each node is a daemon: who needs few of them says so, and has at least those of the partition `other`.
    """
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o711)  # munge wants a socket that every user can reach
    made = Cluster(folder, nodes, slurmd_timeout)
    try:
        start(made)
        yield made
    finally:
        try:
            end(made)
        finally:
            shutil.rmtree(folder)


def forget_dead_nodes(folder: Path) -> None:
    """Remove what the toolkit had on nodes that were killed, which share this machine, of the jobs below a folder.

    A machine without power has none of it any more; here it would be found by tests that look for what jobs leave.
    """
    for told in folder.rglob("temporary-folders"):
        remove_temporary_folders(str(told.parents[1]))


ENGINE = SharedEngine(SHARED, Cluster, cluster)


def environment() -> dict[str, str]:
    """The variables by which Slurm's programs find the cluster that all test processes share; {} if there is none."""
    folder = os.environ.get(SHARED)
    return Cluster(Path(folder)).environment() if folder else {}


def start(cluster: Cluster) -> None:
    for program in PROGRAMS:
        if not shutil.which(program):
            raise DidNotStart(f"{program} is missing: run scripts/setup tests")
    folder = cluster.folder
    for name in ("munge", "state", *(f"spool/{node}" for node in cluster.nodes)):
        (folder / name).mkdir(parents=True)
    (folder / "slurm.conf").write_text(configuration.text(folder, cluster.nodes, cluster.slurmd_timeout))
    until = time.monotonic() + START_SECONDS
    cluster.daemons["munged"] = cluster._daemon(*munged(folder / "munge"), log="munged")
    wait(cluster, until, (folder / "munge" / "socket").exists)
    cluster.daemons["slurmctld"] = cluster._daemon("slurmctld", "-D", log="slurmctld")
    for node in cluster.nodes:
        cluster.start_node(node)
    wait(cluster, until, lambda: idle_nodes(cluster) == len(cluster.nodes))


def munged(folder: Path) -> list[str]:
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    folder.chmod(0o711)
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    return ["munged", "--foreground", *(f"--{option}={folder / name}" for option, name in files.items())]


def idle_nodes(cluster: Cluster) -> int:
    states = ["sinfo", "--noheader", "--Node", "--format=%T", "--partition=debug"]
    environment = {**clean_environment(), **cluster.environment()}
    done = subprocess.run(states, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.split().count("idle")


def wait(cluster: Cluster, until: float, is_so) -> None:
    """Until it is so; daemons cannot tell."""
    while not is_so():
        ended = [name for name, daemon in cluster.daemons.items() if daemon.poll() is not None]
        if ended or time.monotonic() > until:
            what = f"{', '.join(ended)} ended" if ended else f"not ready after {START_SECONDS} seconds"
            said = "".join(path.read_text(errors="replace")[-2000:] for path in sorted(cluster.folder.glob("*.out")))
            raise DidNotStart(f"Slurm: {what}\n{said}")
        threading.Event().wait(0.02)


def end(cluster: Cluster) -> None:
    """End the daemons, and then what they have left of jobs."""
    for daemon in cluster.daemons.values():
        daemon.kill()
    for daemon in cluster.daemons.values():
        daemon.wait()
    cluster.daemons.clear()
    until = time.monotonic() + END_SECONDS
    while left := cluster.processes():
        if time.monotonic() > until:
            raise RuntimeError(f"processes of {cluster.folder} do not end: {left}")
        kill_all(left)
        threading.Event().wait(0.02)


def clean_environment() -> dict[str, str]:
    """This process's own, without what a job or a user of another cluster has set."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH", "SRUN"))}


if __name__ == "__main__":
    sys.exit(run_with(ENGINE.variables(), sys.argv[1:]))
