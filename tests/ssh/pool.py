"""Twelve machines with ssh on this one: each a server of its own, with one unprivileged user and no shared folder.

A machine is a namespace of its own for processes, for its name and for what is mounted; they have the network of this
machine, at other addresses. So the power of one can be cut, and nobody sees the files of another. It needs root.
Several test processes share the pool that this starts for as long as a command runs:

    python -m tests.ssh.pool COMMAND…

In a shell that is started like this, `export PATH=$TEST_SSH/bin:$PATH` lets `ssh host-1` and `estimator` find them.

The machines have Debian's Python, or the one that TEST_SSH_PYTHON names, with its packages.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from estimator_container.runtime.children import descendants

from tests.ports import free_port
from tests.shared_engine import SharedEngine, run_with
from tests.waiting import wait_until_gone

SHARED = "TEST_SSH"
"""The variable that names the folder of the pool that runs already."""
COUNT = 12


def names_of(count: int) -> tuple[str, ...]:
    """The names of so many machines."""
    return tuple(f"host-{number}" for number in range(1, count + 1))


NAMES = names_of(COUNT)
UID = 61001
START_SECONDS = 300
PYTHON = "/usr/bin/python3"
SITE = Path(__file__).parents[2] / ".venv-debian-mpi/lib/python3.11/site-packages"
"""What scripts may import on a machine, which has Debian's Python and Open MPI."""
OTHER_PYTHON = os.environ.get("TEST_SSH_PYTHON")
NEEDED = ("/usr/sbin/sshd", "ssh", "ssh-keygen", "unshare", PYTHON)
SSHD = """
Port {port}
ListenAddress {address}
HostKey /mnt/host_key
AuthorizedKeysFile /mnt/authorized_keys
AllowUsers {user}
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
MaxStartups 100
SetEnv PYTHONPATH=/mnt/site{path}
"""
CLIENT = """
Host {name} {address}
  HostName {address}
  Port {port}
  User {user}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
"""
BOOT = """
hostname {name}
mount -t tmpfs tmpfs /run && mkdir /run/sshd
mount -t tmpfs tmpfs /dev/shm && chmod 1777 /dev/shm
mount --bind {folder} /mnt
mount --bind {home} /mnt/home
{mounts}
for file in passwd group shadow; do mount --bind /mnt/$file /etc/$file; done
mount --bind /mnt/tmp /tmp
exec /usr/sbin/sshd -D -e -f /mnt/sshd_config
"""


class DidNotStart(Exception):
    """The pool could not be started; the text has what was missing, or what its servers said."""


@dataclass
class SshPool:
    """A pool that runs."""

    folder: Path
    names: tuple[str, ...] = NAMES
    is_shared: bool = False
    """Whether all machines have one user with one home, as with a network's file system."""
    addresses: dict[str, str] = field(default_factory=dict)
    """Name of a machine -> where it is; ssh knows it by both."""
    servers: dict[str, subprocess.Popen] = field(default_factory=dict)
    """Name of a machine -> its server; empty where another process started the pool."""

    @property
    def path(self) -> str:
        """PATH, with an `ssh` before all others that has the configuration of somebody who uses the pool."""
        return f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"

    def environment(self) -> dict[str, str]:
        """The variables of somebody who uses the pool."""
        return {"PATH": self.path}

    def home(self, name: str) -> Path:
        """The home of a machine's user, as it is seen from here."""
        return self.folder / (NAMES[0] if self.is_shared else name) / "home"

    def start_machine(self, name: str) -> None:
        """Start a machine, also again after `cut_power`."""
        folder = self.folder / name
        mounts = f"mount --bind {prefix_of(OTHER_PYTHON)} /mnt/python" if OTHER_PYTHON else ""
        script = BOOT.format(name=name, folder=folder, home=self.home(name), mounts=mounts)
        command = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with (self.folder / f"{name}.out").open("ab") as output:
            self.servers[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command, "sh", "-ec", script],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                start_new_session=True,
            )

    def cut_power(self, name: str) -> None:
        """End a machine with all that runs there; nothing is said to anybody but by its kernel."""
        server = self.servers.pop(name)
        inside = descendants(server.pid)
        server.kill()
        server.wait()
        for pid in inside:  # whose ports are the next one's
            wait_until_gone(pid)

    def processes(self, name: str) -> dict[int, str]:
        """What a machine's user runs there: process -> command line."""
        uid, found = UID + self.names.index(name), {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if process.stat().st_uid == uid:
                    words = (process / "cmdline").read_bytes().split(b"\0")
                    found[int(process.name)] = b" ".join(words).decode(errors="replace")
        return {pid: words for pid, words in found.items() if words and not words.startswith("sshd:")}


@contextlib.contextmanager
def pool(count: int = COUNT, is_shared: bool = False) -> Iterator[SshPool]:
    """A pool of the caller's own; nothing is left of it at the end of the block."""
    missing = [program for program in NEEDED if not shutil.which(program)]
    if missing:
        raise DidNotStart(f"{', '.join(missing)} is missing: run scripts/setup tests")
    folder = Path(tempfile.mkdtemp(prefix="ssh-pool-"))
    folder.chmod(0o755)
    made = SshPool(folder, names_of(count), is_shared)
    try:
        start(made)
        yield made
    finally:
        end(made)
        shutil.rmtree(folder)


ENGINE = SharedEngine(SHARED, SshPool, pool)


def start(made: SshPool) -> None:
    folder = made.folder
    keygen("key", folder)
    net, port = f"127.{random.randint(16, 250)}.{random.randint(0, 250)}", free_port()
    known, client = [], []
    (folder / "site").mkdir()
    site = site_of(OTHER_PYTHON) if OTHER_PYTHON else SITE
    for package in ("mpi4py", "numpy", "numpy.libs"):
        if (site / package).exists():
            shutil.copytree(site / package, folder / "site" / package, symlinks=True)
    for number, name in enumerate(made.names):
        facts = {"name": name, "address": f"{net}.{number + 1}", "port": port, "user": f"user{number + 1}"}
        made.addresses[name] = f"{net}.{number + 1}"
        make_machine(folder / name, 0 if made.is_shared else number, facts, folder)
        public = (folder / name / "host_key.pub").read_text().rpartition(" ")[0]
        known.append(f"[{facts['address']}]:{port} {public}\n")
        client.append(CLIENT.format(folder=folder, **facts))
        made.start_machine(name)
    (folder / "known_hosts").write_text("".join(known))
    (folder / "config").write_text("".join(client))
    (folder / "bin").mkdir()
    (folder / "bin" / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {folder}/config "$@"\n')
    (folder / "bin" / "ssh").chmod(0o755)
    wait(made, [f"{net}.{number + 1}" for number in range(len(made.names))], port)


def make_machine(place: Path, number: int, facts: dict[str, object], folder: Path) -> None:
    (place / "home").mkdir(parents=True)
    (place / "tmp").mkdir()
    (place / "python").mkdir()
    (place / "tmp").chmod(0o1777)
    uid = UID + number
    os.chown(place / "home", uid, uid)
    (place / "home").chmod(0o700)
    shutil.copytree(folder / "site", place / "site", copy_function=os.link)
    keygen("host_key", place)
    shutil.copy(folder / "key.pub", place / "authorized_keys")
    user = facts["user"]
    passwd = Path("/etc/passwd").read_text()
    shell = "/bin/sh" if number % 3 == 2 else "/bin/bash"  # whom mpirun does not treat alike
    (place / "passwd").write_text(f"{passwd}{user}:x:{uid}:{uid}::/mnt/home:{shell}\n")
    (place / "group").write_text(f"{Path('/etc/group').read_text()}{user}:x:{uid}:\n")
    (place / "shadow").write_text(f"root:*:19000::::::\nsshd:*:19000::::::\n{user}:*:19000::::::\n")
    path = " PATH=/mnt/python/bin:/usr/bin:/bin LD_LIBRARY_PATH=/mnt/python/lib" if OTHER_PYTHON else ""
    (place / "sshd_config").write_text(SSHD.format(**facts, path=path))


def prefix_of(python: str) -> str:
    """The folder in which an interpreter is installed."""
    return said_by(python, "sys.base_prefix")


def site_of(python: str) -> Path:
    """The folder of its packages."""
    return Path(said_by(python, "sysconfig.get_path('purelib')"))


@functools.cache
def said_by(python: str, expression: str) -> str:
    command = [python, "-c", f"import sys, sysconfig; print({expression})"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def keygen(name: str, folder: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def wait(made: SshPool, addresses: list[str], port: int) -> None:
    """Until all servers answer; they cannot tell."""
    until = time.monotonic() + START_SECONDS
    for address in addresses:
        while True:
            with contextlib.suppress(OSError), socket.create_connection((address, port), 5):
                break
            ended = [name for name, server in made.servers.items() if server.poll() is not None]
            if ended or time.monotonic() > until:
                said = "".join(path.read_text(errors="replace")[-2000:] for path in made.folder.glob("*.out"))
                raise DidNotStart(f"ssh: {', '.join(ended) or address} does not answer\n{said}")
            threading.Event().wait(0.02)


def end(made: SshPool) -> None:
    """End the machines, with all that runs there, and the connections to them that are left open."""
    for name in list(made.servers):
        made.cut_power(name)
    config = str(made.folder / "config").encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if config in (process / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(run_with(ENGINE.variables(), sys.argv[1:]))
