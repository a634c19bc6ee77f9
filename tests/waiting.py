"""Waiting in a test for what cannot say so itself: a condition that comes to hold, or a process that ends or stops.

A bound is there so that a test that fails also ends. It is far beyond what a machine with much else to do takes, of
which a whole engine may stand still for a minute, and says nothing of how fast the product is: a test that does so is
`alone`, and takes the time itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

SECONDS = 180.0
"""How long a wait may take unless a test says otherwise."""
LEAST_REST, LONGEST_REST = 0.01, 0.25
RESTS = 4
"""A wait rests so many times as long as its last look took, so that it leaves the CPUs to what it waits for."""
Found = TypeVar("Found")
LOOK_SECONDS = 0.05
STILL_SECONDS = 0.25
"""By which a look is late where the machine stood still, and not only had other things to do."""
CPUS = len(os.sched_getaffinity(0))


class Load:
    """How busy the machine is while a test runs, for bounds of times that are promised where CPUs are free."""

    def __init__(self) -> None:
        self._looks = self._running = 0
        self._still = self._stolen = 0.0
        self._ends = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()

    def _look(self) -> None:
        with Path("/proc/loadavg").open() as file:
            due, stolen = time.monotonic() + LOOK_SECONDS, _stolen_seconds()
            while not self._ends.wait(LOOK_SECONDS):
                late, due = time.monotonic() - due, time.monotonic() + LOOK_SECONDS
                self._still += late if late > STILL_SECONDS else 0.0
                self._stolen = _stolen_seconds() - stolen
                file.seek(0)
                self._running += int(file.read().split()[3].partition("/")[0]) - 1  # but for this thread
                self._looks += 1

    def stretched(self, seconds: float) -> float:
        """A bound, so many times longer as there were processes to a CPU, on average, that could use one.

        What the machine stood still is added: as long as it did, none of them counts.
        """
        return seconds * max(1.0, self._running / CPUS / max(1, self._looks)) + max(self._still, self._stolen)

    def end(self) -> None:
        self._ends.set()
        self._looking.join()


def _stolen_seconds() -> float:
    """What the machine below this one took of each CPU for others: "steal" of proc(5)."""
    return int(Path("/proc/stat").read_text().split(None, 9)[8]) / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)


def wait_for(
    condition: Callable[[], Found], seconds: float = SECONDS, otherwise: Callable[[], object] | str = ""
) -> Found:
    """Look until a condition holds; returns what it then is, the first true value.

    Raises AssertionError when it does not hold in time, with what `otherwise` says or returns then.
    """
    rest, began = threading.Event(), time.monotonic()
    deadline = began + seconds
    while True:
        if found := condition():
            return found
        ended = time.monotonic()
        if began > deadline:  # a look that began in time is not the last
            raise AssertionError(
                f"it did not happen in {seconds} s. {otherwise() if callable(otherwise) else otherwise}"
            )
        rest.wait(min(max(LEAST_REST, RESTS * (ended - began)), LONGEST_REST))
        began = time.monotonic()


def call_until_it_works(call: Callable[[], object], passing: str) -> None:
    """Call what may fail for a while by something that passes: an error that has these words in it."""

    def works() -> bool:
        try:
            call()
        except Exception as error:
            if passing not in str(error):
                raise
            return False
        return True

    wait_for(works)


def freeze(pause: Callable[[], object]) -> None:
    """Call what pauses a container until it does.

    Where its processes have to wait for a CPU, runc gives up after a third of a second, for its caller to try again:
    https://github.com/opencontainers/runc/pull/4388.
    """
    call_until_it_works(pause, "unable to freeze")


def wait_until_gone(pid: int, seconds: float = SECONDS) -> None:
    """Wait for the end of a process, child of this one or not; one that nobody has reaped has ended."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([process], [], [], seconds)
    finally:
        os.close(process)
    assert ended, f"process {pid} is still there after {seconds} s"


def wait_until_stopped(pid: int, seconds: float = SECONDS) -> None:
    """Wait until a process stands still, as after SIGSTOP."""
    wait_for(lambda: state_of(pid) in ("T", "t"), seconds, lambda: f"process {pid} is in state {state_of(pid)!r}")


def kill(pid: int) -> None:
    """End a process at once, and wait until it has ended: until then it may still answer, hold a lock or write."""
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(pid)


def kill_all(pids: Iterable[int]) -> None:
    """As a power cut does: none of them sees another end; one that has ended is passed over."""
    pids = list(pids)
    for signum in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)


def remove_in_use(folder: Path) -> None:
    """Remove a folder that somebody may still write to, as who says `rm -rf` again when it has failed."""

    def is_gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    wait_for(is_gone, otherwise=lambda: f"still there: {list(folder.rglob('*'))}")


def state_of(pid: int) -> str:
    """The letter of a process's state, as proc(5) has it; empty where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
