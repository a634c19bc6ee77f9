"""What a job tells of itself in events, kept within bounds, and read on only where its logs have grown."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from estimator_container.contract import agent_events, events
from estimator_container.contract.event_decoding import decode
from estimator_container.logs.frames import EVENT_MAGIC, HEADER_SIZE, end_of_frame, time_of_frame

from ...telemetry.sentences import sentence_about
from ..logs import pieces
from . import standing
from .timeline_rows import TimelineRows

if TYPE_CHECKING:
    from estimator_container.contract.event_decoding import AnyEvent

    from ..logs.selection import LogFile, Selection

MOST_NOTES = 500
"""Sentences kept, the newest."""
MOST_CHECKPOINTS = 1000
"""Snapshots kept, the newest."""
_PIECE = 1 << 22  # bytes that are looked through at a time
_SECONDS = 0.15  # after which `update` leaves the rest to another call


@dataclass
class PhaseOfHost:
    """A phase of a host's start. Times are seconds since 1970."""

    host: str
    phase: str
    began: float
    ended: float | None = None


@dataclass
class RankState:
    """The newest that is known of a rank; the rank of a script without a world is None."""

    host: str
    rank: int | None
    started: float | None = None
    ended: float | None = None
    code: int | None = None
    step: int | None = None
    stepped: float | None = None
    """When the last step ended, in seconds since 1970."""


@dataclass(frozen=True)
class PublishedSnapshot:
    """A snapshot of the checkpoints that was published. `lag` is the seconds from its first change to the store."""

    name: str
    time: float
    files: int
    bytes: int
    sent: int
    lag: float


@dataclass
class _Facts:
    phases: dict[tuple[str, str], PhaseOfHost] = field(default_factory=dict)
    ranks: dict[tuple[str, int | None], RankState] = field(default_factory=dict)
    notes: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=MOST_NOTES))
    checkpoints: deque[PublishedSnapshot] = field(default_factory=lambda: deque(maxlen=MOST_CHECKPOINTS))
    is_stopping: bool = False
    standing: dict[str, object] | None = None
    """Where the ranks are that stand still, while they do."""


class Story:
    """The events of one attempt of a job."""

    def __init__(self) -> None:
        self._facts = _Facts()
        self._timeline = TimelineRows()
        self._offsets: dict[int, int] = {}
        self._lock = threading.Lock()

    def update(self, selection: Selection) -> bool:
        """Read on for a moment; returns whether all that is written has been read."""
        deadline = time.monotonic() + _SECONDS
        with self._lock:
            read = [self._update(file, deadline) for file in selection.files]
        return all(read)

    def _update(self, file: LogFile, deadline: float) -> bool:
        size, at = pieces.size_of(file.path), self._offsets.get(file.number, 0)
        while at < size and time.monotonic() < deadline:
            end = min(size, at + _PIECE)
            at = self._take(file, at, pieces.read(file.path, at, end))
            self._offsets[file.number] = at
            if end == size:
                return True
        return at >= size

    def _take(self, file: LogFile, base: int, data: bytes) -> int:
        """Take the events in a piece; returns where the next piece begins."""
        at = data.find(EVENT_MAGIC)
        while at >= 0:
            end = end_of_frame(data, at)
            if end is not None and end > len(data) and (at > 0 or len(data) < _PIECE):
                return base + at  # the next piece has it whole
            if end is not None and end <= len(data):
                event = decode(data[at + HEADER_SIZE : end])
                if event is not None:
                    self._take_event(file.host, time_of_frame(data, at) / 1e9, event)
            elif len(data) - at < HEADER_SIZE:
                return base + at
            at = data.find(EVENT_MAGIC, at + len(EVENT_MAGIC))
        return base + max(0, len(data) - len(EVENT_MAGIC) + 1)

    def _take_event(self, host: str, at: float, event: AnyEvent) -> None:
        facts = self._facts
        self._timeline.take(host, at, event)
        match event:
            case events.PhaseStarted():
                facts.phases[host, event.phase] = PhaseOfHost(host, event.phase, at)
            case events.PhaseEnded():
                known = facts.phases.setdefault((host, event.phase), PhaseOfHost(host, event.phase, at - event.seconds))
                known.ended = at
            case events.Stopping():
                facts.is_stopping = True
            case events.RanksStand():
                facts.standing = standing.folded(event, at)
            case events.RanksMove():
                facts.standing = None
            case events.RankStarted():
                self._rank(host, event.rank).started = at
            case events.RankEnded():
                rank = self._rank(host, event.rank)
                rank.ended, rank.code = at, event.code
            case events.TrainingSteps():
                for number, step, last in zip(event.ranks, event.numbers, event.last, strict=False):
                    rank = self._rank(host, number)
                    rank.step, rank.stepped = step, last
            case agent_events.CheckpointPublished():
                published = PublishedSnapshot(event.snapshot, at, event.files, event.bytes, event.sent, event.seconds)
                facts.checkpoints.append(published)
        said = sentence_about(host, event)
        if said is not None:
            facts.notes.append((at, said))

    def _rank(self, host: str, rank: int | None) -> RankState:
        return self._facts.ranks.setdefault((host, rank), RankState(host, rank))

    def to_json(self) -> dict[str, object]:
        """As the API shows it."""
        with self._lock:
            facts = self._facts
            ranks = sorted(facts.ranks.values(), key=lambda each: (-1 if each.rank is None else each.rank, each.host))
            return {
                "phases": [asdict(each) for each in facts.phases.values()],
                "ranks": [asdict(each) for each in ranks],
                "notes": [{"time": at, "text": text} for at, text in facts.notes],
                "checkpoints": [asdict(each) for each in facts.checkpoints],
                "standing": facts.standing,
            }

    def timeline(self) -> list[dict[str, object]]:
        """The rows of the timeline, as the API shows them."""
        with self._lock:
            return self._timeline.to_json()

    def ranks_of(self, host: str) -> set[int | None]:
        """The ranks that have started on a host so far; None is the script of a host without a world."""
        with self._lock:
            return {rank for of, rank in self._facts.ranks if of == host}

    def now(self) -> str:
        """What is happening, in words; empty where nothing has been told yet."""
        with self._lock:
            facts = self._facts
            if facts.is_stopping:
                return "stopping: each rank has been told to end"
            steps = [each.step for each in facts.ranks.values() if each.step is not None and each.ended is None]
            if steps:
                low, high = min(steps), max(steps)
                return f"training, at step {high}" if low == high else f"training, the ranks at steps {low} to {high}"
            open_phases = [each for each in facts.phases.values() if each.ended is None]
            if not open_phases:
                return ""
            phase = open_phases[-1].phase
            hosts = sum(each.phase == phase for each in open_phases)
            return f"{_PHASES.get(phase, phase)} on {hosts} host{'' if hosts == 1 else 's'}"


_PHASES = {
    "code": "unpacking the code",
    "requirements": "installing the requirements",
    "channels": "fetching the data",
    "world": "assembling the world",
    "run": "running the script",
}
