"""torchrun for a job that is to go on after a failure: an agent for each of two hosts, both in one container."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

HOSTS = PROCESSES = 2
PATIENCE = 60.0  # seconds that one world may take to come up, or again
FAULTS = ("kill-rank", "kill-host", "freeze-host")
"""Those from which it recovers: of a rank that hangs nobody is told."""
REPLACED = ("kill-host", "freeze-host")
"""After these somebody has to start another agent, as nobody does by itself."""
_SETTINGS = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Without it ranks meet in the agents' own store, where those of a second attempt find the addresses of the first one's
world, so that it never comes up.
"""
_STRIKE = """
import os, signal, sys, time
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
fault, rank = sys.argv[1], int(sys.argv[2])
if not os.path.exists(f"/proc/{rank}"):
    sys.exit()
agent = parent(rank)
ranks = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent(pid) == agent]
struck = [rank] if fault in ("kill-rank", "hang-rank") else [agent, *ranks]
signum = {"freeze-host": signal.SIGSTOP, "hang-rank": signal.SIGUSR1}.get(fault, signal.SIGKILL)
print(time.time())
for pid in struck:
    os.kill(pid, signum)
"""


_UP = re.compile(r"^up (\d+) (\d+)$", re.MULTILINE)


def ranks_in(said: str) -> dict[int, int]:
    """By rank, the process that was last up in it, as the scripts of the benchmarks say it."""
    return {int(rank): int(pid) for rank, pid in _UP.findall(said)}


class StoodStill(RuntimeError):
    """The ranks of a world do not come up, or not again."""


class Agents:
    """The agents in a container, and what their ranks say."""

    def __init__(self, container: str, words: Sequence[str], restarts: int, seconds: float) -> None:
        """`words` are the arguments of the script, which may run for so many seconds."""
        self._container = container
        self._words = words
        self._restarts = restarts
        self._seconds = seconds
        self._said: list[str] = []
        self._news = threading.Condition()
        self._open = 0

    def start(self) -> None:
        """Start one more; which host it is, it finds out from the others."""
        rendezvous = ("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:29400", "--rdzv-id=bench")
        size = (f"--nnodes={HOSTS}", f"--nproc-per-node={PROCESSES}", f"--max-restarts={self._restarts}")
        argv = ["timeout", f"{self._seconds:g}", "torchrun", *size, *rendezvous, "/script.py", *self._words]
        settings = [word for name, value in _SETTINGS.items() for word in ("-e", f"{name}={value}")]
        running = subprocess.Popen(
            ["docker", "exec", *settings, self._container, *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._open += 1
        threading.Thread(target=self._listen, args=(running,), daemon=True).start()

    @property
    def said(self) -> str:
        """What the ranks have said so far."""
        with self._news:
            return "".join(self._said)

    def strike(self, fault: str, pid: int) -> float | None:
        """Do a fault to a rank, or to its host; returns when, in seconds since 1970, or None if it is gone."""
        argv = ["docker", "exec", self._container, "python3", "-c", _STRIKE, fault, str(pid)]
        struck = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        return float(struck) if struck else None

    def wait_until(self, done: Callable[[str], bool]) -> str:
        """What they have said by the time that it is enough. Raises StoodStill where it never is."""
        with self._news:
            self._news.wait_for(lambda: self._open == 0 or done("".join(self._said)), PATIENCE)
        said = self.said
        if not done(said):
            raise StoodStill(f"torchrun has not gone on for {PATIENCE:g} s:\n{said[-2000:]}")
        return said

    def _listen(self, running: subprocess.Popen[str]) -> None:
        assert running.stdout is not None
        for line in running.stdout:
            with self._news:
                self._said.append(line)
                self._news.notify()
        running.wait()
        with self._news:
            self._open -= 1
            self._news.notify()


@contextlib.contextmanager
def agents(
    image: str, script: Path, words: Sequence[str], restarts: int = 3, seconds: float = 3 * PATIENCE
) -> Iterator[Agents]:
    """As many as there are hosts, in a container of an image that has torchrun; all of it is ended after.

    `words` are the arguments of the script, and `seconds` how long it may run.
    """
    name = f"bench-{uuid.uuid4().hex[:8]}"
    mount = f"{script}:/script.py:ro"
    argv = ["docker", "run", "-d", "--init", "--name", name, "-v", mount, "--entrypoint=", image]
    subprocess.run([*argv, "sleep", f"{seconds + PATIENCE:g}"], check=True, stdout=subprocess.DEVNULL)
    try:
        made = Agents(name, words, restarts, seconds)
        for _ in range(HOSTS):
            made.start()
        yield made
    finally:
        subprocess.run(["docker", "rm", "-f", name], check=False, stdout=subprocess.DEVNULL)
