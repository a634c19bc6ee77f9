"""A Docker engine on a machine of the pool: a daemon of its own, which sees the machine's files and nothing else."""

from __future__ import annotations

import os
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.ssh.pool import UID, SshPool
from tests.waiting import wait_for

_PLACES = ("--host=unix:///run/docker.sock", "--data-root=/run/docker-data", "--exec-root=/run/docker")
_ALONE = ("--iptables=false", "--ip-forward=false", "--ip-masq=false")


def on_machine(pool: SshPool, name: str, *command: str) -> list[str]:
    """A command that runs another one on a machine, as root."""
    server = pool.servers[name].pid
    (first,) = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return ["nsenter", f"--target={first}", "--mount", "--uts", "--pid", *command]


@dataclass
class MachineDocker:
    """The engine of one machine."""

    pool: SshPool
    name: str
    daemon: subprocess.Popen[bytes] | None = None
    bridge: str = field(default_factory=lambda: f"est-{os.urandom(4).hex()}")
    """One that nothing uses: a daemon that is told to have none removes docker0, which is that of this machine's own
    engine, for the machines of the pool share its network."""

    def start(self) -> None:
        """Wait until it answers; only the machine's user may use it."""
        number = self.pool.names.index(self.name) + 1
        address = f"198.18.{os.urandom(1)[0]}.{4 * number + 1}/30"  # of RFC 2544: nobody has it
        for words in (f"link add {self.bridge} type bridge", f"address add {address} dev {self.bridge}"):
            subprocess.run(["ip", *words.split()], check=True)
        words = ("dockerd", f"--group={UID + number - 1}", f"--bridge={self.bridge}", *_PLACES, *_ALONE)
        command = on_machine(self.pool, self.name, *words)
        log = self.pool.folder / f"{self.name}.docker"
        with log.open("wb") as output:
            self.daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        wait_for(lambda: self._docker("version").returncode == 0, otherwise=lambda: log.read_text()[-2000:])

    def stop(self) -> None:
        """Let go of it: it ends with its machine, and what it has is in that one's memory."""
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()
        subprocess.run(["ip", "link", "delete", self.bridge], check=False, stderr=subprocess.DEVNULL)

    def ask(self, *words: str) -> list[str]:
        """The lines that a command of docker says there."""
        done = self._docker(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]

    def load(self, image: str) -> None:
        """Have an image of this machine's engine there."""
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
            subprocess.run(on_machine(self.pool, self.name, "docker", "load"), stdin=saved.stdout, check=True)
        assert saved.returncode == 0

    def make_empty(self, image: str) -> None:
        """Have an image there with nothing in it."""
        command = on_machine(self.pool, self.name, "docker", "import", "-", image)
        subprocess.run(command, input=bytes(tarfile.RECORDSIZE), check=True, stdout=subprocess.DEVNULL)

    def containers(self) -> list[str]:
        """The names of those that are there, whatever state they are in."""
        return self.ask("ps", "--all", "--format={{.Names}}")

    def _docker(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = on_machine(self.pool, self.name, "docker", *words)
        return subprocess.run(command, capture_output=True, text=True, check=False)
