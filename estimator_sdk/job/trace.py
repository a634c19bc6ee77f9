"""A job as a trace: what its hosts and ranks did, in the Trace Event Format that Perfetto and Chrome open.

Times are those of each host's clock. A host is a process of the trace, and its ranks and its phases are the threads.
Training steps are told now and then, so a slice is all steps between two tellings, with the mean time of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_container.contract import agent_events, events
from estimator_container.contract.event_decoding import decode
from estimator_container.logs.frames import EVENT, SPAWNED, FrameParser

from ..telemetry.machines import host_of, logs_here

if TYPE_CHECKING:
    from estimator_container.contract.event_decoding import AnyEvent

    from ..backends.port import StartedJob

READ_SIZE = 1 << 20  # bytes of a log taken at a time
_PHASES = 0  # the thread of a host's own phases; rank n is thread n + 1


@dataclass
class _HostTrace:
    """The events of one host in one attempt."""

    process: int
    slices: list[dict[str, Any]] = field(default_factory=list)
    _phases: dict[str, float] = field(default_factory=dict)
    _ranks: dict[int | None, float] = field(default_factory=dict)
    _steps: dict[int | None, tuple[int, int, float]] = field(default_factory=dict)
    """Of each rank how many steps were told last, the number of the last one, and when that ended."""

    def take(self, time: float, event: AnyEvent) -> None:
        match event:
            case events.PhaseStarted():
                self._phases[event.phase] = time
            case events.PhaseEnded():
                self._add(event.phase, _PHASES, self._phases.pop(event.phase, time), time)
            case events.RankStarted() if (event.rank or 0) < SPAWNED:
                self._ranks[event.rank] = time
            case events.RankEnded() if event.rank in self._ranks:
                began = self._ranks.pop(event.rank)
                self._add("rank", _thread(event.rank), began, time, {"exit code": event.code})
            case events.TrainingSteps():
                told = zip(event.ranks, event.steps, event.numbers, event.first, event.last, strict=False)
                for rank, steps, number, first, last in told:
                    self._add_steps(rank, steps, number, first, last)
            case agent_events.CheckpointPublished():
                self._add(f"checkpoint {event.snapshot}", _PHASES, time - event.seconds, time)
            case events.FailureFound() | events.Stopping():
                name = "failure found" if isinstance(event, events.FailureFound) else "stopping"
                self.slices.append({**self._place(name, _PHASES, time), "ph": "i", "s": "p"})

    def close(self, time: float) -> None:
        """End what has not ended at the time of the last event."""
        for phase, began in self._phases.items():
            self._add(phase, _PHASES, began, max(began, time))
        for rank, began in self._ranks.items():
            self._add("rank", _thread(rank), began, max(began, time))

    def _add_steps(self, rank: int | None, steps: int, number: int, first: float, last: float) -> None:
        before = self._steps.get(rank)
        self._steps[rank] = (steps, number, last)
        if before is None or before[0] >= steps:  # another process of the rank has begun to count
            count, begin, since = steps - 1, number - steps + 1, first
        else:
            count, begin, since = steps - before[0], before[1], before[2]
        if count > 0:
            mean = (last - since) / count
            name = f"step {number}" if count == 1 else f"steps {begin + 1} to {number}"
            self._add(name, _thread(rank), since, last, {"steps": count, "mean seconds": round(mean, 6)})

    def _add(self, name: str, thread: int, began: float, ended: float, facts: dict[str, Any] | None = None) -> None:
        length = round(1e6 * (ended - began), 1)
        self.slices.append({**self._place(name, thread, began), "ph": "X", "dur": length, "args": facts or {}})

    def _place(self, name: str, thread: int, time: float) -> dict[str, Any]:
        return {"name": name, "pid": self.process, "tid": thread, "ts": round(1e6 * time, 1)}


def make(job: StartedJob) -> dict[str, Any]:
    """The trace of a job, as a JSON object. Raises EstimatorError for a job that runs elsewhere."""
    found: list[dict[str, Any]] = []
    processes: dict[str, int] = {}
    for log in logs_here(job):
        host = host_of(log)
        trace = _HostTrace(processes.setdefault(host, len(processes) + 1))
        newest = 0.0
        for time, event in _events(log):
            newest = max(newest, time)
            trace.take(time, event)
        trace.close(newest)
        found += trace.slices
    begin = min((each["ts"] for each in found), default=0.0)
    for each in found:
        each["ts"] = round(each["ts"] - begin, 1)
    found.sort(key=lambda each: (each["ts"], -each.get("dur", 0.0)))
    facts = {"job": job.name, "begins": begin / 1e6}
    return {"traceEvents": [*_names(processes, found), *found], "displayTimeUnit": "ms", "otherData": facts}


def _events(log: Path) -> Iterator[tuple[float, AnyEvent]]:
    if not log.is_file():
        return
    parser = FrameParser()
    with log.open("rb") as file:
        while data := file.read(READ_SIZE):
            for frame in parser.feed(data):
                event = decode(frame.data) if frame.stream == EVENT else None
                if event is not None:
                    yield frame.time_ns / 1e9, event


def _names(processes: dict[str, int], found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for host, process in processes.items():
        yield {"name": "process_name", "ph": "M", "pid": process, "args": {"name": host}}
        for thread in sorted({each["tid"] for each in found if each["pid"] == process}):
            name = "phases" if thread == _PHASES else "script" if thread == _thread(None) else f"rank {thread - 1}"
            yield {"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _thread(rank: int | None) -> int:
    return SPAWNED if rank is None else rank + 1
