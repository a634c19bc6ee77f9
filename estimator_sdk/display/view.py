"""What a job has told so far, kept within bounds: its phases, the last lines of each rank, its metrics."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from estimator_container.contract import events

from ..telemetry.kept import Kept
from ..telemetry.log_values import StreamValues
from ..telemetry.sentences import sentence_about
from .log import Log, Source, shown
from .series import Series

if TYPE_CHECKING:
    from estimator_container.contract.event_decoding import AnyEvent
    from estimator_container.logs.lines import Line

    from .progress import Logs

NOTES = 20
"""Sentences kept about what happened."""
MOST_METRICS = 1000
"""Names of metrics; who writes under ever new names has none of the others."""


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
        """Whether every host that has begun the phase has ended it."""
        return self.begun <= self.ended


class View:
    """Takes the events and lines of a job, in their order, and remembers what is shown."""

    def __init__(self, definitions: Sequence[tuple[str, re.Pattern[str]]] = (), logs: Logs = "all") -> None:
        self.phases: dict[str, Phase] = {}
        self.logs: dict[tuple[Source, int | str], Log] = {}
        """By who writes them, and the number of the rank, or the name of the host."""
        self.metrics: dict[str, Series] = {}
        self.notes: deque[str] = deque(maxlen=NOTES)
        self.kept = Kept()
        self._definitions = definitions
        self._defined = {name for name, _ in definitions}
        self._streams: dict[tuple[int | str, str], StreamValues] = {}
        self._chosen = logs

    def on_event(self, host: str, event: AnyEvent) -> None:
        """Take what a host, or with "" the service, says of itself."""
        match event:
            case events.PhaseStarted():
                self._begin(event.phase, host)
            case events.PhaseEnded():
                self._end(event.phase, host, event.seconds)
            case events.Stopping():
                self._begin("stopping", host)
            case events.Ended():
                self._end_all(host)
            case events.AttemptFailed():
                self.phases.clear()
            case events.ServiceStatus():
                self._end_all(host)
                self._begin(event.status, host)
                return
        for said in (sentence_about(host, event), self.kept.take(event)):
            if said is not None:
                self.notes.append(said)

    def on_line(self, line: Line) -> None:
        """Take a line of the log; metrics are read from all of it, whatever is shown."""
        if line.stream != "toolkit":
            self._take_values(line)
        if self._shows(line):
            self._log_of(line).add(line.stream, line.data)

    def on_open_line(self, line: Line) -> None:
        """Take the newest state of a line that has no end yet."""
        if self._shows(line):
            self._log_of(line).unfinished[line.stream] = shown(line.data)

    def _take_values(self, line: Line) -> None:
        """Those that `Job.curves` finds in a line."""
        whose = line.host if line.rank is None else line.rank
        stream = self._streams.get((whose, line.stream))
        if stream is None:
            stream = self._streams[whose, line.stream] = StreamValues(self._definitions)
        for found in stream.of_line(line):
            is_shown = found.is_defined or found.name not in self._defined
            if is_shown and (found.name in self.metrics or len(self.metrics) < MOST_METRICS):
                self.metrics.setdefault(found.name, Series()).add(whose, found.value)

    def in_order(self) -> list[Log]:
        """The logs: of the ranks by their numbers, then those of the hosts."""
        return sorted(self.logs.values(), key=lambda log: log.order)

    def _shows(self, line: Line) -> bool:
        return self._chosen == "all" or (self._chosen == "rank0" and line.rank in (0, None))

    def _log_of(self, line: Line) -> Log:
        source: Source = "toolkit" if line.stream == "toolkit" else "script" if line.rank is None else "rank"
        key = (source, line.host if line.rank is None else line.rank)
        if key not in self.logs:
            self.logs[key] = Log(source, line.host, line.rank)
        return self.logs[key]

    def _begin(self, phase: str, host: str) -> None:
        self.phases.setdefault(phase, Phase()).begun.add(host)

    def _end(self, phase: str, host: str, seconds: float | None = None) -> None:
        known = self.phases.setdefault(phase, Phase())
        known.ended.add(host)
        if seconds is not None:
            known.seconds = max(known.seconds or 0.0, seconds)

    def _end_all(self, host: str) -> None:
        for name, phase in self.phases.items():
            if host in phase.begun:
                self._end(name, host)
