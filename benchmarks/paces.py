"""How fast jobs make their steps, of which one goes on while the others stand still, by turns.

They start side by side, and are frozen once they have made their first steps: starting them one after the other would
take minutes, and what is to be known is a ratio of a few per cent.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from estimator_container.training.page import StepTime, read_pages, read_times

from estimator_sdk import Estimator, Job
from estimator_sdk.job.traces.trace import layout_of
from estimator_sdk.telemetry.machines import logs_here

from .jobs import PATIENCE
from .turns import Clock, enter, freeze, group

TURN = 1.5  # seconds
LOOK = 0.1
FIRST_STEPS = 12
"""Which are not counted: they compile, and fill what is kept."""


@dataclass(frozen=True)
class Pace:
    """How fast a job made its steps in a part of its turns."""

    rate: float
    """Steps a second of a rank."""
    input: float | None
    """The share of the time in which its first rank waited for input, by its own clock; None where it did not look."""


@dataclass
class PacedJob:
    """A job in a group of its own, and what it has done in its turns."""

    job: Job
    group: Path
    clock: Clock = field(default_factory=Clock)
    ends: list[tuple[int, float]] = field(default_factory=list)
    """Of its first rank, at the end of each part: how many steps have ended, and when the last one has."""
    waits: list[tuple[float, float]] = field(default_factory=lambda: [(0, 0)])
    """Time for which it waited for input before the first part and in each, and of which that is known. What it waits
    for while it is frozen would count in full, so this is from the first to the last time in a turn that it looked."""

    def steps(self) -> tuple[int, float]:
        """How many steps its first rank has made, and when the last one has ended; none before it trains."""
        for folder in self._pages():
            return next(((page.steps, page.last / 1e9) for page in read_pages(folder) if not page.rank), (0, 0.0))
        return 0, 0.0

    def go_on(self, seconds: float) -> None:
        """Its turn."""
        seen = [self._times()]
        freeze(self.group, False)
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            time.sleep(LOOK)
            if self._times() != seen[-1]:
                seen.append(self._times())
        freeze(self.group, True)
        self.clock.add(begun, time.monotonic())
        for first, last in zip(seen[1:2], seen[-1:], strict=False):
            waited, known = self.waits[-1]
            self.waits[-1] = waited + (last.input or 0) - (first.input or 0), known + last.time - first.time

    def end_part(self) -> None:
        """Begin to count anew."""
        self.ends.append(self.steps())
        self.waits.append((0, 0))

    def paces(self) -> list[Pace]:
        """Of each part, by the time of its own turns."""
        parts = zip(self.ends, self.ends[1:], self.waits[1:], strict=False)
        return [
            Pace((steps - before) / self.clock.between(began, ended), waited / known if known else None)
            for (before, began), (steps, ended), (waited, known) in parts
        ]

    def _times(self) -> StepTime | None:
        return next((each for folder in self._pages() for each in read_times(folder) if not each.rank), None)

    def _pages(self) -> Iterator[str]:
        """The folder in which its only host has the pages of its ranks, once it is there."""
        for log in logs_here(self.job.started):
            with contextlib.suppress(OSError):
                yield Path(layout_of(log).training_steps).read_text(encoding="utf-8")


def paces(jobs: Mapping[str, Callable[[], Estimator]], parts: int, turns: int) -> dict[str, list[Pace]]:
    """How fast each job is, which would go on for ever, in so many parts of so many turns each.

    What makes a job must be known by name to a new process. Raises TimeoutError where one makes no steps, and
    RuntimeError for who may not freeze processes.
    """
    with contextlib.ExitStack() as stack:
        paced = dict(zip(jobs, _all_started(stack, list(jobs.values())), strict=True))
        _wait_for_steps(list(paced.values()))
        for part in range(parts + 1):  # of the first, one turn leaves the last steps of starting behind
            for _ in range(turns if part else 1):
                for job in paced.values():
                    job.go_on(TURN)
            for job in paced.values():
                job.end_part()
    return {name: job.paces() for name, job in paced.items()}


def _all_started(stack: contextlib.ExitStack, jobs: list[Callable[[], Estimator]]) -> Iterator[PacedJob]:
    """Each by a process that is in a group, where all that it starts is, too."""
    groups = [stack.enter_context(group()) for _ in jobs]
    for each in groups:
        freeze(each, False)
    context = multiprocessing.get_context("spawn")
    pools = [stack.enter_context(ProcessPoolExecutor(1, context, enter, (each,))) for each in groups]
    futures = [pool.submit(_start, job) for pool, job in zip(pools, jobs, strict=True)]
    for future, each in zip(futures, groups, strict=True):
        job = PacedJob(Job.attach(future.result()), each)
        stack.callback(_end, job)
        yield job


def _start(job: Callable[[], Estimator]) -> str:
    return job().fit(logs="none", wait=False).name


def _end(job: PacedJob) -> None:
    freeze(job.group, False)
    job.job.stop()
    job.job.started.wait(PATIENCE)
    job.job.delete()


def _wait_for_steps(paced: list[PacedJob]) -> None:
    """Until all have made their first steps. Who has stands still, so that the others find the machine idle."""
    limit = time.monotonic() + PATIENCE
    late = list(paced)
    while late:
        for job in late:
            if job.job.ended is not None:
                job.job.wait()  # raises why
            if job.steps()[0] >= FIRST_STEPS:
                freeze(job.group, True)
        late = [job for job in late if job.steps()[0] < FIRST_STEPS]
        if late and time.monotonic() > limit:
            raise TimeoutError(f"{late[0].job.name} has not made {FIRST_STEPS} steps in {PATIENCE:g} s")
        time.sleep(LOOK)
