"""What the ranks recorded in a window of the timeline, merged: one trace in the Trace Event Format, of one clock.

Horovod's timeline has a process for each tensor, which becomes a thread of one process here; PyTorch's profiler has
processes and threads of its own, which are kept apart by rank.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...values.home import regular_file
from .trace import name_of_thread, thread_of

_FLOWS = frozenset("stfbne")
"""Kinds of events that belong together by their `id`, which ranks count by themselves."""
_FAR = 3600.0
"""Seconds from the window beyond which a trace's clock is another one than the calendar's."""
HOROVOD, TORCH = "horovod", "torch"


@dataclass(frozen=True)
class RankRecord:
    """What a rank wrote at the end of a window. Times are those of its host's clock, in seconds since 1970."""

    host: str
    rank: int | None
    began: float
    ended: float
    steps: list[tuple[int, float]]
    """The number of each step that ended in it, and when."""
    files: dict[str, Path]
    """Of its recorders, by their kind."""
    said: list[str]

    @classmethod
    def read(cls, host: str, path: Path) -> RankRecord:
        """Raises OSError, or ValueError, TypeError or LookupError for what is no such file."""
        with open(path, encoding="utf-8", opener=regular_file) as file:
            try:
                found = json.load(file)
                files = {str(kind): path.parent / Path(name).name for kind, name in found["files"].items()}
                steps = [(int(number), float(time)) for number, time in found["steps"]]
                rank = None if found["rank"] is None else int(found["rank"])
                said = [str(sentence) for sentence in found["said"]]
                began, ended = float(found["began"]), float(found["ended"])
            except (AttributeError, OverflowError, RecursionError) as error:  # a script may write here, too
                raise ValueError(f"{path.name} is not what a rank writes: {error!r}") from None
        if not all(map(math.isfinite, (began, ended, *(time for _, time in steps)))):
            raise ValueError(f"{path.name} has a time that is not a number")
        return cls(host, rank, began, ended, steps, files, said)

    @property
    def name(self) -> str:
        """As people know the rank; a script without a world by its host."""
        return name_of_rank(self.rank) if self.rank is not None else f"the script on {self.host}"


def name_of_rank(rank: int | None) -> str:
    """
    >>> name_of_rank(3), name_of_rank(None)
    ('rank 3', 'script')
    """
    return name_of_thread(thread_of(rank))


@dataclass
class _Processes:
    """The numbers of the trace's processes, each with what it is called."""

    events: list[dict[str, Any]] = field(default_factory=list)
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)

    def number(self, key: tuple[object, ...], name: str) -> int:
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers) + 1
            self.events.append(_named("process_name", self.numbers[key], name))
        return self.numbers[key]


def merge(job_name: str, records: list[RankRecord], offsets: dict[str, float]) -> tuple[dict[str, Any], list[str]]:
    """The trace, and sentences about files that could not be read.

    `offsets` are seconds by which the clocks of hosts are ahead of that of the first one, which has none.
    """
    processes, failed = _Processes(), list[str]()
    begin = min((each.began - offsets.get(each.host, 0.0) for each in records), default=0.0)
    found: list[dict[str, Any]] = []
    for record in records:  # the first processes are those that people look at first
        processes.number(("steps", record.host), f"{record.host}: steps")
    for record in records:
        zero = 1e6 * (begin + offsets.get(record.host, 0.0))  # the trace's begin on the clock of that host
        found += _steps(record, processes.numbers["steps", record.host], zero)
        for kind, path in record.files.items():
            try:
                events = _read(path)
                found += (
                    _horovod(events, processes, zero) if kind == HOROVOD else _torch(record, events, processes, zero)
                )
            except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
                failed.append(f"{record.name}: its file {path.name} cannot be read: {error}")
    facts = {"job": job_name, "begins": begin, "clock_offsets": offsets}
    found.sort(key=lambda each: float(each.get("ts", 0.0)))
    return {"traceEvents": [*processes.events, *found], "displayTimeUnit": "ms", "otherData": facts}, failed


def _named(what: str, process: int, name: str, thread: object = 0) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _steps(record: RankRecord, process: int, zero: float) -> Iterator[dict[str, Any]]:
    thread = thread_of(record.rank)
    yield _named("thread_name", process, record.name, thread)
    before = record.began
    for number, ended in record.steps:
        place = {"pid": process, "tid": thread, "ts": round(1e6 * before - zero, 1)}
        yield {"name": f"step {number}", "cat": "steps", "ph": "X", **place, "dur": round(1e6 * (ended - before), 1)}
        before = ended


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The facts of a trace, and its events: Horovod's is a list of them alone."""
    with open(path, encoding="utf-8", opener=regular_file) as file:
        document = json.load(file)
    facts = document if isinstance(document, dict) else {}
    events = document["traceEvents"] if isinstance(document, dict) else document
    return facts, [each for each in events if isinstance(each, dict)]


def _horovod(
    trace: tuple[dict[str, Any], list[dict[str, Any]]], processes: _Processes, zero: float
) -> Iterator[dict[str, Any]]:
    """Its times count from its start, which its first event tells in microseconds since 1970 (`timeline.cc`)."""
    process = processes.number((HOROVOD,), "Horovod, by tensor")
    start, unfinished = 0.0, Counter[object]()
    for event in trace[1]:
        told = event.get("args", {})
        tensor = event.get("pid", 0)
        if event.get("ph") == "M":
            start = float(told.get("start_time_since_epoch_in_micros", start))
            if event.get("name") == "process_name" and "name" in told:
                yield _named("thread_name", process, str(told["name"]), tensor)
            continue
        unfinished[tensor] += {"B": 1, "E": -1}.get(str(event.get("ph")), 0)
        if unfinished[tensor] < 0:  # the end of what began before the window
            unfinished[tensor] = 0
        else:
            yield {"cat": HOROVOD, **event, "pid": process, "tid": tensor, "ts": start + float(event["ts"]) - zero}


def _torch(
    record: RankRecord, trace: tuple[dict[str, Any], list[dict[str, Any]]], processes: _Processes, zero: float
) -> Iterator[dict[str, Any]]:
    facts, events = trace
    first = min((float(event["ts"]) for event in events if event.get("ph") == "X"), default=0.0)
    base = _base(record, first, float(facts.get("baseTimeNanoseconds", 0)) / 1e3)
    names = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
    for event in events:
        own = event.get("pid", 0)
        process = processes.number((TORCH, record.host, record.rank, own), f"{record.name}: {names.get(own, own)}")
        if event.get("name") == "process_name":
            continue
        moved = {**event, "pid": process}
        if "ts" in event:
            moved["ts"] = base + float(event["ts"]) - zero
        if event.get("ph") in _FLOWS and "id" in event:
            moved["id"] = f"{record.host}.{record.rank}.{event['id']}"
        yield moved


def _base(record: RankRecord, first: float, told: float) -> float:
    """What to add to a time of PyTorch's for microseconds since 1970: versions count from here or from there."""
    for base in (told, 0.0):
        if abs((base + first) / 1e6 - record.began) < _FAR:
            return base
    return 1e6 * record.began - first
