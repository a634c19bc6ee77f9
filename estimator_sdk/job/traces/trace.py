"""A job as a trace: what its hosts and ranks did, in the Trace Event Format that Perfetto and Chrome open.

Times are those of the first host's clock, where it is known how far the others are from it. A host is a process of the
trace, and its ranks and its phases are the threads.
Training steps are told now and then, so a slice is all steps between two tellings, with the mean time of one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_container.contract import agent_events, events
from estimator_container.contract.names import Layout
from estimator_container.logs.frames import SPAWNED

from ...telemetry.machines import host_of, logs_here
from ...values.home import regular_file
from ..timeline import events_in

if TYPE_CHECKING:
    from estimator_container.contract.event_decoding import AnyEvent

    from ...backends.port import StartedJob

PHASES = 0
"""The thread of a host's own phases; rank n is thread n + 1."""


class SliceKind(str, Enum):
    """What a slice is of."""

    PHASE = "phase"
    RANK = "rank"
    STEPS = "steps"
    CHECKPOINT = "checkpoint"
    MOMENT = "moment"


@dataclass(frozen=True)
class Slice:
    """Something that a host or a rank did. Times are seconds since 1970."""

    kind: SliceKind
    name: str
    thread: int
    began: float
    ended: float
    code: int | None = None
    """With which a rank ended."""
    steps: int = 0
    last: int = 0
    """The number of the last one of its steps."""

    def moved(self, seconds: float) -> Slice:
        """The same at another time."""
        return replace(self, began=self.began + seconds, ended=self.ended + seconds) if seconds else self

    def to_json(self, process: int) -> dict[str, Any]:
        """As an event of the format."""
        place = {
            "name": self.name,
            "cat": self.kind.value,
            "pid": process,
            "tid": self.thread,
            "ts": round(1e6 * self.began, 1),
        }
        if self.kind is SliceKind.MOMENT:
            return {**place, "ph": "i", "s": "p"}
        facts: dict[str, Any] = {}
        if self.kind is SliceKind.RANK and self.code is not None:
            facts = {"exit code": self.code}
        elif self.kind is SliceKind.STEPS:
            facts = {"steps": self.steps, "mean seconds": round((self.ended - self.began) / self.steps, 6)}
        return {**place, "ph": "X", "dur": round(1e6 * (self.ended - self.began), 1), "args": facts}


class HostTrace:
    """Makes slices of the events of one host in one attempt."""

    def __init__(self) -> None:
        self._phases: dict[str, float] = {}
        self._ranks: dict[int | None, float] = {}
        self._steps: dict[int | None, tuple[int, int, float]] = {}
        """Of each rank how many steps were told last, the number of the last one, and when that ended."""

    def take(self, time: float, event: AnyEvent) -> Iterator[Slice]:
        """The slices that end with this event; a script that tells of no time has none."""
        found = self._ended_with(time, event)
        return (each for each in found if math.isfinite(each.began) and math.isfinite(each.ended))

    def _ended_with(self, time: float, event: AnyEvent) -> Iterator[Slice]:
        match event:
            case events.PhaseStarted():
                self._phases[event.phase] = time
            case events.PhaseEnded():
                yield Slice(SliceKind.PHASE, event.phase, PHASES, self._phases.pop(event.phase, time), time)
            case events.RankStarted() if (event.rank or 0) < SPAWNED:
                self._ranks[event.rank] = time
            case events.RankEnded() if event.rank in self._ranks:
                began = self._ranks.pop(event.rank)
                yield Slice(SliceKind.RANK, "rank", thread_of(event.rank), began, time, event.code)
            case events.TrainingSteps():
                told = zip(event.ranks, event.steps, event.numbers, event.first, event.last, strict=False)
                for rank, steps, number, first, last in told:
                    yield from self._steps_of(rank, steps, number, first, last)
            case agent_events.CheckpointPublished():
                name = f"checkpoint {event.snapshot}"
                yield Slice(SliceKind.CHECKPOINT, name, PHASES, time - event.seconds, time)
            case events.FailureFound():
                yield Slice(SliceKind.MOMENT, "failure found", PHASES, time, time)
            case events.Stopping():
                yield Slice(SliceKind.MOMENT, "stopping", PHASES, time, time)

    def unfinished(self, time: float) -> Iterator[Slice]:
        """What has not ended, as if it did at that time."""
        for phase, began in self._phases.items():
            yield Slice(SliceKind.PHASE, phase, PHASES, began, max(began, time))
        for rank, began in self._ranks.items():
            yield Slice(SliceKind.RANK, "rank", thread_of(rank), began, max(began, time))

    def _steps_of(self, rank: int | None, steps: int, number: int, first: float, last: float) -> Iterator[Slice]:
        before = self._steps.get(rank)
        self._steps[rank] = (steps, number, last)
        if before is None or before[0] >= steps:  # another process of the rank has begun to count
            count, begin, since = steps - 1, number - steps + 1, first
        else:
            count, begin, since = steps - before[0], before[1], before[2]
        if count > 0:
            name = f"step {number}" if count == 1 else f"steps {begin + 1} to {number}"
            yield Slice(SliceKind.STEPS, name, thread_of(rank), since, last, steps=count, last=number)


def layout_of(log: Path) -> Layout:
    """The folders of the host whose log that is, by `Layout.frames`."""
    return Layout(str(log.parents[len(Path(Layout("").frames).parts) - 1]))


def clock_offsets(path: Path) -> dict[str, float]:
    """By how many seconds the clocks of hosts are ahead of the first one's, which wrote it to `path` (`Layout.clocks`).

    Empty where they were not compared, as before the first window of the timeline.
    """
    try:
        with open(path, encoding="utf-8", opener=regular_file) as file:
            found = json.load(file)
        return {str(host): float(each["offset"]) for host, each in found.items()}
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return {}


def make(job: StartedJob) -> dict[str, Any]:
    """The trace of a job, as a JSON object. Raises EstimatorError for a job that runs elsewhere."""
    found: list[dict[str, Any]] = []
    processes: dict[str, int] = {}
    logs = logs_here(job)
    ahead: dict[str, float] = {}
    for log in logs:
        ahead |= clock_offsets(Path(layout_of(log).clocks))
    for log in logs:
        host = host_of(log)
        process, trace, newest = processes.setdefault(host, len(processes) + 1), HostTrace(), 0.0
        slices: list[Slice] = []
        for time, event in events_in(log):
            newest = max(newest, time)
            slices += trace.take(time, event)
        slices += trace.unfinished(newest)
        found += [each.moved(-ahead.get(host, 0.0)).to_json(process) for each in slices]
    begin = min((each["ts"] for each in found), default=0.0)
    for each in found:
        each["ts"] = round(each["ts"] - begin, 1)
    found.sort(key=lambda each: (each["ts"], -each.get("dur", 0.0)))
    facts = {"job": job.name, "begins": begin / 1e6}
    return {"traceEvents": [*_names(processes, found), *found], "displayTimeUnit": "ms", "otherData": facts}


def _names(processes: dict[str, int], found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for host, process in processes.items():
        yield {"name": "process_name", "ph": "M", "pid": process, "args": {"name": host}}
        for thread in sorted({each["tid"] for each in found if each["pid"] == process}):
            name = name_of_thread(thread)
            yield {"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def name_of_thread(thread: int) -> str:
    """As people know it."""
    return "phases" if thread == PHASES else "script" if thread == thread_of(None) else f"rank {thread - 1}"


def thread_of(rank: int | None) -> int:
    """The thread of a rank; None is the script of a host without a world."""
    return SPAWNED if rank is None else rank + 1
