"""Hosts on this machine, such as people make them by hand: names of their own, an sshd for each, bare containers."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from estimator_container.worlds.mpi import command_line, programs
from estimator_container.worlds.mpi.world import MpiWorld

from . import peers

BARE_AGENT = """#!/bin/sh
host=$1; shift
exec unshare --uts sh -c "hostname $host; $*"
"""
"""Starts a daemon at once, on this machine under another name: the least that a launch agent can do."""


@dataclass(frozen=True)
class Hosts:
    """Hosts of this machine that are one name each, and the world that mpirun makes of them."""

    names: tuple[str, ...]
    folder: Path

    def mpirun(self, agent: str, processes: int = 1, flags: Sequence[str] = ()) -> list[str]:
        """The same command as a job's, but for the agent that starts the daemons, and other flags that count more."""
        nodes = (os.uname().nodename, *self.names[1:])
        world = MpiWorld(self.names, processes, tuple(flags))
        fitted = command_line.Fit(nodes, "lo", str(self.folder), crowded=True, outnumbered=False, single_copy=True)
        set_first = [f"{name}={value}" for name, value in world.defaults("lo", with_fabric=False).items()]
        return ["/usr/bin/env", *set_first, *command_line.mpirun(world, fitted, programs.find("mpirun"), agent)]

    @property
    def bare_agent(self) -> str:
        path = self.folder / "agent"
        path.write_text(BARE_AGENT)
        path.chmod(0o700)
        return str(path)


@contextlib.contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """Names for hosts, and a folder for what they need. Raises PermissionError for who may not name hosts."""
    if os.geteuid() != 0:
        raise PermissionError("hosts with names of their own on one machine need root (unshare --uts)")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield Hosts(tuple(f"algo-{number}" for number in range(1, count + 1)), Path(folder))


@contextlib.contextmanager
def sshd_on(chosen: Hosts) -> Iterator[str]:
    """An sshd for every host but the first; what mpirun is to call instead of `ssh`."""
    folder, servers = chosen.folder, []
    for name in ("server", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copy(folder / "client.pub", folder / "authorized")
    Path("/run/sshd").mkdir(exist_ok=True)
    (folder / "sshd.conf").write_text(
        f"HostKey {folder}/server\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\nPidFile none\n"
        "PermitRootLogin yes\nMaxStartups 100\nListenAddress 127.0.0.1\n"
    )
    known = f"UserKnownHostsFile /dev/null\nStrictHostKeyChecking no\nLogLevel ERROR\nIdentityFile {folder}/client\n"
    text = []
    try:
        for name in chosen.names[1:]:
            port = free_port()
            serve = f"hostname {name}; exec {peers.sshd()} -D -f {folder}/sshd.conf -p {port}"
            servers.append(subprocess.Popen(["unshare", "--uts", "sh", "-c", serve], stderr=subprocess.DEVNULL))
            text.append(f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n")
        (folder / "ssh.conf").write_text("".join(text) + f"Host *\n{known}")
        agent = f"ssh -F {folder}/ssh.conf"
        for name in chosen.names[1:]:
            wait_for(partial(subprocess.run, [*agent.split(), name, "true"], capture_output=True))
        yield agent
    finally:
        for server in servers:
            server.kill()
            server.wait()


def wait_for(attempt: Callable[[], subprocess.CompletedProcess[bytes]]) -> None:
    """Until a program that asks a server ends well."""
    until = time.monotonic() + 30
    while (done := attempt()).returncode != 0:
        if time.monotonic() > until:
            raise RuntimeError(f"no answer: {done.stderr.decode()}")
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextlib.contextmanager
def bare_containers(
    image: str, count: int, argv: Sequence[str], mounts: Mapping[str, str] | None = None
) -> Iterator[list]:
    """Containers alone, on a network of their own, started as many at a time as the backend does; removed after."""
    import docker

    from estimator_sdk.backends.docker import engine
    from estimator_sdk.backends.docker.containers import PARALLEL

    client = docker.from_env()
    network = client.networks.create(f"bare-{os.urandom(4).hex()}", driver="bridge")
    volumes = {path: {"bind": place, "mode": "ro"} for path, place in (mounts or {}).items()}

    def start(number: int) -> object:
        name = f"algo-{number + 1}"
        made = client.containers.create(
            image,
            list(argv),
            entrypoint="",
            hostname=name,
            network=network.name,
            volumes=volumes,
            networking_config={network.name: client.api.create_endpoint_config(aliases=[name])},
        )
        made.start()
        return made

    containers: list = []
    try:
        with ThreadPoolExecutor(PARALLEL) as pool:
            containers = list(pool.map(start, range(count)))
            yield containers
            list(pool.map(lambda each: each.remove(force=True), containers))
            containers = []
    finally:
        for each in containers:
            each.remove(force=True)
        engine.remove_network(client.api, network.id)
