"""What a job has told so far, kept within bounds: its phases, the last lines of each rank, its metrics."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..job import values_in
from ..progress import sentence_about

if TYPE_CHECKING:
    from estimator_container.lines import Line

    from ..progress import Logs

LAST_LINES = 100
"""Lines kept of each log."""
WIDTH = 400
"""Characters kept of each line."""
NOTES = 20
"""Sentences kept about what happened."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass
class Phase:
    """One step of the job."""

    begun: set[str] = field(default_factory=set)
    """The hosts that have begun it."""
    ended: set[str] = field(default_factory=set)
    seconds: float | None = None
    """How long it took on the slowest host that said so."""

    @property
    def is_over(self) -> bool:
        return self.begun <= self.ended


@dataclass
class Log:
    """The end of what one rank, or one host's script or toolkit, has written."""

    count: int = 0
    """All its lines."""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    unfinished: dict[str, str] = field(default_factory=dict)
    """By stream, the line that has no end yet, as it is now."""

    def newest(self) -> list[str]:
        """Its last lines, and behind them those that have no end yet."""
        return [*self.lines, *self.unfinished.values()]


@dataclass
class Values:
    """What was found of one metric."""

    count: int
    last: float
    rank: int | None


class View:
    """Takes the events and lines of a job, in their order, and remembers what is shown."""

    def __init__(self, definitions: Sequence[tuple[str, re.Pattern[str]]] = (), logs: Logs = "all") -> None:
        self.phases: dict[str, Phase] = {}
        self.logs: dict[str, Log] = {}
        """By whose they are, such as `rank 0` or `algo-1 toolkit`."""
        self.metrics: dict[str, Values] = {}
        self.notes: deque[str] = deque(maxlen=NOTES)
        self._definitions = definitions
        self._chosen = logs
        self._ranks: dict[str, tuple[int, str]] = {}

    def on_event(self, host: str, event: dict[str, Any]) -> None:
        """Take what a host, or with "" the service, says of itself."""
        kind, phase = event["event"], event.get("phase")
        if kind == "phase_started":
            self.phases.setdefault(str(phase), Phase()).begun.add(host)
        elif kind == "phase_ended":
            self._end(str(phase), host, event["seconds"])
        elif kind == "ended":
            self._end_all(host)
        elif kind == "service_status":
            self._end_all(host)
            self.phases.setdefault(event["status"], Phase()).begun.add(host)
        elif kind == "attempt_failed":
            self.phases.clear()
        said = sentence_about(event) if kind != "service_status" else None
        if said is not None:
            self.notes.append(said)

    def on_line(self, line: Line) -> None:
        """Take a line of the log; metrics are read from all of it, whatever is shown."""
        for name, value in values_in(line, self._definitions):
            before = self.metrics.get(name)
            self.metrics[name] = Values(before.count + 1 if before else 1, value, line.rank)
        if not self._shows(line):
            return
        log = self.logs.setdefault(self._whose(line), Log())
        log.count += 1
        log.lines.append(_shown(line.data))
        log.unfinished.pop(line.stream, None)

    def on_open_line(self, line: Line) -> None:
        """Take the newest state of a line that has no end yet."""
        if self._shows(line):
            self.logs.setdefault(self._whose(line), Log()).unfinished[line.stream] = _shown(line.data)

    def in_order(self) -> list[tuple[str, Log]]:
        """The logs: of the ranks by their numbers, then those of the hosts."""
        return sorted(self.logs.items(), key=lambda item: self._ranks[item[0]])

    def _shows(self, line: Line) -> bool:
        return self._chosen == "all" or (self._chosen == "rank0" and line.rank in (0, None))

    def _whose(self, line: Line) -> str:
        script = line.stream != "toolkit"
        name = f"rank {line.rank}" if line.rank is not None else f"{line.host}{'' if script else ' toolkit'}"
        self._ranks[name] = (line.rank, "") if line.rank is not None else (1 << 32 if script else 1 << 33, line.host)
        return name

    def _end(self, phase: str, host: str, seconds: float | None = None) -> None:
        known = self.phases.setdefault(phase, Phase())
        known.ended.add(host)
        if seconds is not None:
            known.seconds = max(known.seconds or 0.0, seconds)

    def _end_all(self, host: str) -> None:
        for name, phase in self.phases.items():
            if host in phase.begun:
                self._end(name, host)


def _shown(data: bytes) -> str:
    """A line as text: what a terminal would be left with, cut, and with nothing that a screen would act on."""
    newest = data.rstrip(b"\r\n").rpartition(b"\r")[2]
    # A character has at most four bytes: what is cut off here would be below, and bytes that are no text are slow.
    text = newest[: 4 * WIDTH + 4].decode("utf-8", "backslashreplace")
    if len(text) > WIDTH:
        text = f"{text[:WIDTH]}…"
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
