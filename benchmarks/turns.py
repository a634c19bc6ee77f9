"""Ways that are under way at the same time, of which one goes on and the others stand still, by turns.

What else the machine does, and how fast it is just then, comes to all of them alike. Readings that are taken one
after the other spread by more than the few per cent that some targets are about.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from .harness import Role, Way

TURN = 0.5  # seconds
PATIENCE = 10.0  # seconds for the last processes of a way to end


class Clock:
    """Counts only the time of one way's turns."""

    def __init__(self) -> None:
        self._turns: list[tuple[float, float]] = []

    def add(self, begun: float, ended: float) -> None:
        self._turns.append((begun, ended))

    def between(self, begin: float, end: float) -> float:
        """Seconds of turns from one time of the day to another."""
        return sum(max(0.0, min(end, ended) - max(begin, begun)) for begun, ended in self._turns)


class Together:
    """Readings of several ways, from rounds in which all of them take turns."""

    def __init__(
        self, works: Mapping[str, Callable[[], Any]], readings: Callable[[Any, Clock], Sequence[float]]
    ) -> None:
        """`works` must be known by name to a new process; `readings` are made of what one returned."""
        self._works = works
        self._readings = readings
        self._left: dict[str, list[float]] = {name: [] for name in works}

    def ways(self, roles: Mapping[str, Role], at_most: int | None = None) -> tuple[Way, ...]:
        """One for each work; whoever has no role of its own is a peer."""
        return tuple(
            Way(name, roles.get(name, "peer"), partial(self.reading, name), at_most=at_most) for name in self._works
        )

    def reading(self, name: str) -> float:
        """One that has not been asked for yet; of a new round if there is none left."""
        if not self._left[name]:
            done = zip(self._works, by_turns(list(self._works.values())), strict=True)
            self._left = {each: list(self._readings(result, clock)) for each, (result, clock) in done}
        return self._left[name].pop()


def by_turns(works: Sequence[Callable[[], Any]]) -> list[tuple[Any, Clock]]:
    """What each returns, and its clock. Every one has a process of its own, which is frozen with all that it starts.

    Raises what a work raises, and RuntimeError for who may not freeze processes.
    """
    clocks = [Clock() for _ in works]
    with contextlib.ExitStack() as stack:
        groups = [stack.enter_context(group()) for _ in works]
        context = multiprocessing.get_context("spawn")
        pools = [stack.enter_context(ProcessPoolExecutor(1, context, enter, (each,))) for each in groups]
        stack.callback(lambda: [freeze(each, False) for each in groups])
        futures = [pool.submit(work) for pool, work in zip(pools, works, strict=True)]
        while not all(future.done() for future in futures):
            for future, folder, clock in zip(futures, groups, clocks, strict=True):
                if not future.done():
                    freeze(folder, False)
                    begun = time.time()
                    time.sleep(TURN)
                    freeze(folder, True)
                    clock.add(begun, time.time())
        return [(future.result(), clock) for future, clock in zip(futures, clocks, strict=True)]


@contextlib.contextmanager
def group() -> Iterator[Path]:
    """A group of processes that is frozen at first, by version 2 of the kernel's control groups."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    found = next((folder for _, folder, kind, *_ in mounts if kind == "cgroup2"), None)
    if found is None or not os.access(found, os.W_OK):
        raise RuntimeError("to take turns, processes are frozen: that needs root, and a cgroup2 that is mounted")
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=found))
    try:
        freeze(folder, True)
        yield folder
    finally:
        freeze(folder, False)
        end = time.monotonic() + PATIENCE
        while "populated 1" in (folder / "cgroup.events").read_text() and time.monotonic() < end:
            time.sleep(0.01)
        folder.rmdir()


def freeze(folder: Path, frozen: bool) -> None:
    (folder / "cgroup.freeze").write_text(str(int(frozen)))


def enter(folder: Path) -> None:
    """Move this process into the group."""
    (folder / "cgroup.procs").write_text(str(os.getpid()))
