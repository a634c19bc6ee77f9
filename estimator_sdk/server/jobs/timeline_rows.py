"""The trace of a job as rows of slices, of a bounded size: the longer a job, the more steps a slice of it has."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...job.traces.trace import PHASES, HostTrace, Slice, SliceKind, name_of_thread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from estimator_container.contract.event_decoding import AnyEvent

MOST_STEP_SLICES = 300
"""Slices of steps that a row has at most."""
MOST_OTHERS = 100
"""Of each other kind the newest that a row has."""


@dataclass
class StepsSlice:
    """Some steps of a rank, one after another. Times are seconds since 1970."""

    began: float
    ended: float
    steps: int
    last: int
    """The number of the last one."""
    busy: float
    """Seconds that they took, without what was between them."""
    tellings: int = 1

    def join(self, later: StepsSlice) -> None:
        """Take in what came after."""
        self.ended, self.last = later.ended, later.last
        self.steps += later.steps
        self.busy += later.busy
        self.tellings += later.tellings


@dataclass
class TimelineRow:
    """What a rank, or a host itself, did."""

    host: str
    thread: int
    others: dict[SliceKind, deque[Slice]] = field(default_factory=dict)
    steps: list[StepsSlice] = field(default_factory=list)
    width: int = 1
    """Tellings of steps in a slice that is full."""

    def add(self, found: Slice) -> None:
        """There is one more."""
        if found.kind is not SliceKind.STEPS:
            self.others.setdefault(found.kind, deque(maxlen=MOST_OTHERS)).append(found)
            return
        made = StepsSlice(found.began, found.ended, found.steps, found.last, found.ended - found.began)
        if self.steps and self.steps[-1].tellings < self.width:
            self.steps[-1].join(made)
        else:
            self.steps.append(made)
        if len(self.steps) > MOST_STEP_SLICES:
            self._halve()

    def _halve(self) -> None:
        self.width *= 2
        for at in range(0, len(self.steps) - 1, 2):
            self.steps[at].join(self.steps[at + 1])
        del self.steps[1::2]

    def to_json(self, unfinished: Iterable[Slice]) -> dict[str, object]:
        """As the API shows it, with what has not ended."""
        done = [_other(each, each.ended) for found in self.others.values() for each in found]
        return {
            "host": self.host,
            "name": name_of_thread(self.thread),
            "slices": [*done, *(_other(each, None) for each in unfinished)],
            "steps": [
                {
                    "began": each.began,
                    "ended": each.ended,
                    "steps": each.steps,
                    "last": each.last,
                    "mean": each.busy / each.steps,
                }
                for each in self.steps
            ],
        }


class TimelineRows:
    """The rows of one attempt, made of events as they are read."""

    def __init__(self) -> None:
        self._hosts: dict[str, HostTrace] = {}
        self._rows: dict[tuple[str, int], TimelineRow] = {}

    def take(self, host: str, time: float, event: AnyEvent) -> None:
        """Take an event of a host."""
        trace = self._hosts.get(host)
        if trace is None:
            trace = self._hosts[host] = HostTrace()
        for found in trace.take(time, event):
            self._row(host, found.thread).add(found)

    def to_json(self) -> list[dict[str, object]]:
        """As the API shows them: hosts in the order of their names, each with its ranks below it."""
        unfinished: dict[tuple[str, int], list[Slice]] = {}
        for host, trace in self._hosts.items():
            for each in trace.unfinished(0.0):
                unfinished.setdefault((host, each.thread), []).append(each)
                self._row(host, each.thread)
        ordered = sorted(self._rows.items(), key=lambda item: (item[0][1] != PHASES, item[0][1], item[0][0]))
        return [row.to_json(unfinished.get(key, ())) for key, row in ordered]

    def _row(self, host: str, thread: int) -> TimelineRow:
        return self._rows.setdefault((host, thread), TimelineRow(host, thread))


def _other(found: Slice, ended: float | None) -> dict[str, object]:
    return {"kind": found.kind.value, "name": found.name, "began": found.began, "ended": ended, "code": found.code}
