"""A Slurm of four containers and a login machine, whose shared folder, /shared, is MooseFS with its caches on.

A sixth container is the controller: it has the accounting, and keeps the shared folder's data. All of it ends with the
block, and what a process that was killed has left is removed by the next one.

    python -m tests.slurm.containers.cluster bash    # or pytest, and several test processes share the cluster

`docker ps` shows its machines, and `docker exec -it -u ada …-login bash` logs in.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shlex
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.shared_engine import SharedEngine, run_with
from tests.waiting import freeze

from . import image, settings

NODES = ("n1", "n2", "n3", "n4")
USER = "ada"
SHARED = "TEST_SLURM_CONTAINERS"
"""The variable that names the folder of a cluster that runs already."""
START_SECONDS = 120.0
ANSWER_SECONDS = 400.0
LABEL = "estimator-test.slurm"
"""Of a container or a network: the process that it ends with."""
PYTHON = "/shared/software/env/bin/python"
"""Of the environment on the shared folder, which has the project."""
HERE = Path(__file__).parent

REMEMBERED_SECONDS = 86400
"""For so long Slurm's controller knows a job that has ended, unless a test says otherwise."""


@dataclass
class ContainerCluster:
    """A cluster that runs."""

    prefix: str
    """Of the names of its containers."""
    network: str
    """The first three numbers of its addresses."""
    folder: Path
    """What all machines see as /cluster."""
    owner: int
    """The process that it ends with."""

    def container(self, machine: str) -> str:
        return f"{self.prefix}-{machine}"

    def run(self, *command: str, machine: str = "controller", user: str = "root") -> str:
        """What a command prints on a machine; it must succeed."""
        return docker("exec", "--user", user, "--workdir", "/", self.container(machine), *command)

    def login(self, command: str, user: str = USER, machine: str = "login") -> str:
        """What a command of the shell prints to a user who is logged in; it must succeed."""
        return self.run("bash", "-lc", f"cd && {command}", machine=machine, user=user)

    def python(self, program: str, variables: Mapping[str, str] = MappingProxyType({}), machine: str = "login") -> str:
        """What a program prints to a user who is logged in, with the project in its environment."""
        told = shlex.join(f"{name}={value}" for name, value in variables.items())
        return self.login(f"exec env {told} {PYTHON} -c {shlex.quote(program)}", machine=machine)

    def in_background(self, program: str, pid_file: str) -> None:
        """Run a program on the login machine; a file in the user's home says which process it is."""
        self.login(f"{{ {PYTHON} -c {shlex.quote(program)} >{pid_file}.log 2>&1 & echo $! >{pid_file}; }}")

    def start(self, machine: str) -> None:
        """A new container for a machine, also for one whose container was removed."""
        role = "node" if machine in NODES else machine
        docker(
            *("run", "--detach", "--init", "--name", self.container(machine), "--hostname", machine),
            *("--label", f"{LABEL}={self.owner}", "--network", self.prefix, "--ip", self.address(machine)),
            *("--device", "/dev/fuse", "--cap-add", "SYS_ADMIN", "--security-opt", "apparmor=unconfined"),
            *("--volume", f"{self.folder}:/cluster:ro", image.of_cluster(), "sh", "/cluster/machine.sh", role),
        )

    def address(self, machine: str) -> str:
        return f"{self.network}.{2 + ('controller', 'login', *NODES).index(machine)}"

    @property
    def gateway(self) -> str:
        """The address by which its machines reach this one."""
        return f"{self.network}.254"

    def configure(self, remembered_seconds: int = REMEMBERED_SECONDS) -> None:
        """Write slurm.conf; a controller that runs has to be told: `scontrol reconfigure`."""
        text = settings.slurm(self.network, {node: self.address(node) for node in NODES}, remembered_seconds)
        (self.folder / "slurm.conf").write_text(text)

    # What becomes of a node.

    def kill(self, node: str) -> None:
        """A power cut."""
        docker("kill", self.container(node))

    def cut(self, node: str) -> None:
        """Take a node off the network: connections that are open hear nothing of it."""
        docker("network", "disconnect", self.prefix, self.container(node))

    def freeze(self, node: str) -> None:
        freeze(lambda: docker("pause", self.container(node)))

    def thaw(self, node: str) -> None:
        docker("unpause", self.container(node))

    def stop_controller(self) -> None:
        """End Slurm's controller; its machine and the shared folder stay."""
        self.run("sh", "-c", "kill $(cat /run/slurmctld.pid); while pgrep slurmctld; do sleep 0.1; done")

    def start_controller(self) -> None:
        self.run("slurmctld")
        self.wait(lambda: self.run("sh", "-c", "scontrol ping || true").count("UP") == 1, "the controller answers")

    def stop_accounting(self) -> None:
        """End what `sacct` asks."""
        self.run("sh", "-c", "kill $(cat /run/slurmdbd.pid); while pgrep slurmdbd; do sleep 0.1; done")

    def start_accounting(self) -> None:
        self.run("slurmdbd")
        answers = "sacctmgr -i show cluster >/dev/null 2>&1 && echo yes || true"
        self.wait(lambda: "yes" in self.run("sh", "-c", answers), "the accounting answers")

    def replace(self, *nodes: str) -> None:
        """Have new machines for nodes that were hurt, whatever became of them, and wait until Slurm has them back."""
        for node in nodes:
            docker("rm", "--force", self.container(node))
            self.start(node)
        self.wait(lambda: all(map(self.is_up, nodes)), "nodes come back")

    def is_up(self, node: str) -> bool:
        """Whether jobs may start there; a node of a job that was put back in the queue may look busy for a while."""
        state = self.run("sinfo", "--noheader", "--format=%T", "--partition=debug", f"--nodes={node}").strip()
        return state in ("idle", "mixed", "allocated")

    def queue(self) -> str:
        """What is in the queue, but for what has ended."""
        return self.run("squeue", "--noheader").strip()

    def processes(self, node: str, user: str = USER) -> str:
        """What a user runs on a node."""
        return self.run("bash", "-c", f"ps -u {user} -o pid=,stat=,args= || true", machine=node).strip()

    def wait(self, is_so: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
        until = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < until, f"{what}: not within {seconds:g} s\n{self.said()}"
            threading.Event().wait(0.2)

    def said(self) -> str:
        """What its machines have said, for a test that fails."""
        logs = [
            f"== {machine}\n{subprocess.run(log, capture_output=True, text=True, check=False).stdout[-2000:]}"
            for machine in ("controller", "login", *NODES)
            for log in (("docker", "logs", "--tail", "20", self.container(machine)),)
        ]
        queue = subprocess.run(
            ["docker", "exec", self.container("controller"), "sh", "-c", "sinfo -N; squeue; tail /var/log/slurm*.log"],
            capture_output=True,
            text=True,
            check=False,
        )
        return "\n".join([*logs, queue.stdout])


def docker(*arguments: str) -> str:
    done = subprocess.run(
        ["docker", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=ANSWER_SECONDS,
    )
    assert done.returncode == 0, f"docker {arguments}: {done.stdout}{done.stderr}"
    return done.stdout


@contextlib.contextmanager
def cluster() -> Iterator[ContainerCluster]:
    """A cluster of the caller's own, all of whose nodes are idle."""
    remove_left()
    with tempfile.TemporaryDirectory(prefix="slurm-containers-") as folder:
        made = ContainerCluster(f"slurm{os.getpid()}x{random.randrange(1000)}", "", Path(folder), os.getpid())
        try:
            _start(made)
            yield made
        finally:
            remove(f"{LABEL}={os.getpid()}", made.prefix)


def _start(made: ContainerCluster) -> None:
    _make_network(made)
    made.folder.chmod(0o755)
    made.configure()
    (made.folder / "gres.conf").write_text(settings.DEVICES)
    (made.folder / "slurmdbd.conf").write_text(settings.ACCOUNTING)
    (made.folder / "controller").write_text(made.address("controller"))
    (made.folder / "machine.sh").write_bytes((HERE / "machine.sh").read_bytes())
    (made.folder / "munge.key").touch(0o600)
    (made.folder / "munge.key").write_bytes(os.urandom(128))
    image.of_cluster()
    for machine in ("controller", "login", *NODES):
        made.start(machine)
    idle = "sinfo --noheader --Node --partition=debug --format=%T 2>/dev/null | grep -c '^idle' || true"
    made.wait(lambda: made.run("sh", "-c", idle).strip() == str(len(NODES)), "the nodes are idle")
    made.wait(lambda: made.run("sh", "-c", "ls /shared", machine="login") != "", "/shared is there")
    _install(made)
    (made.folder / "cluster.json").write_text(json.dumps([made.prefix, made.network, made.owner]))


def _found(folder: Path) -> ContainerCluster:
    prefix, network, owner = json.loads((folder / "cluster.json").read_text())
    return ContainerCluster(prefix, network, folder, owner)


ENGINE = SharedEngine(SHARED, _found, cluster)


def _make_network(made: ContainerCluster) -> None:
    """A network with addresses that no other has."""
    for _ in range(50):
        made.network = f"10.{random.randint(100, 250)}.{random.randint(0, 255)}"
        make = ["docker", "network", "create", "--label", f"{LABEL}={os.getpid()}"]
        make += ["--subnet", f"{made.network}.0/24", "--gateway", made.gateway, made.prefix]
        if subprocess.run(make, capture_output=True, check=False).returncode == 0:
            return
    raise AssertionError("the engine gives no network")


def _install(made: ContainerCluster) -> None:
    """The project, in an environment on the shared folder, over what the machines have of their own."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=image.ROOT,
        capture_output=True,
        check=True,
    ).stdout
    checkout = io.BytesIO()
    with tarfile.open(fileobj=checkout, mode="w") as archive:
        for name in filter(None, files.decode().split("\0")):
            if (image.ROOT / name).exists():
                archive.add(image.ROOT / name, name)
    install = """
        mkdir -p /shared/software/checkout && cd /shared/software && tar -xf - -C checkout --no-same-owner
        python3 -m venv --system-site-packages env
        env/bin/pip install --quiet --no-deps --no-build-isolation ./checkout/container ./checkout
        chmod -R a+rX /shared/software"""
    shell = ["docker", "exec", "-i", made.container("controller"), "sh", "-ec", install]
    done = subprocess.run(shell, input=checkout.getvalue(), capture_output=True, check=False, timeout=ANSWER_SECONDS)
    assert done.returncode == 0, done.stderr.decode()


def remove(label: str, network: str) -> None:
    """All containers with a label, and the network."""
    for container in docker("ps", "--all", "--quiet", "--filter", f"label={label}").split():
        docker("rm", "--force", "--volumes", container)
    subprocess.run(["docker", "network", "rm", network], capture_output=True, check=False)


def remove_left() -> None:
    """What processes that run no more have left."""
    said = docker("network", "ls", "--filter", f"label={LABEL}", "--format", f'{{{{.Name}}}} {{{{.Label "{LABEL}"}}}}')
    for network, pid in (line.split() for line in said.splitlines()):
        if not Path(f"/proc/{pid}").exists():
            remove(f"{LABEL}={pid}", network)


if __name__ == "__main__":
    sys.exit(run_with(ENGINE.variables(), sys.argv[1:]))
