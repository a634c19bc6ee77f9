"""When what happened in a job, attempt by attempt and rank by rank: what its logs say, without a judgement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract import agent_events, events
from estimator_container.contract.event_decoding import decode
from estimator_container.logs.frames import EVENT, NO_RANK, SPAWNED, STDERR, STDOUT, Frame, FrameParser

from ..telemetry.metrics import metric_definitions, values_in
from ..values.home import opened

if TYPE_CHECKING:
    from estimator_container.contract.event_decoding import AnyEvent

    from ..backends.port import StartedJob
    from ..backends.status import AttemptRecord

READ_SIZE = 1 << 20  # bytes of a log taken at a time
Who = tuple[str, int | None]
"""A host, and a rank; None where hosts run the script without a world."""


@dataclass
class Span:
    """From the first of something to the last, in seconds since 1970."""

    first: float
    last: float

    def add(self, time: float) -> None:
        """There is one more."""
        self.first, self.last = min(self.first, time), max(self.last, time)


@dataclass
class RankTimeline:
    """What one rank did in one attempt. Times are seconds since 1970; None is what did not happen."""

    started: float | None = None
    ended: float | None = None
    code: int | None = None
    steps: dict[float, Span] = field(default_factory=dict)
    """From the end of the first training step to that of the last, of each of its processes by the former."""
    metrics: Span | None = None
    """Of lines with a metric."""
    output: Span | None = None


@dataclass
class HostTimeline:
    """What one host did in one attempt."""

    requirements: Span | None = None
    stopping: float | None = None
    ended: float | None = None


@dataclass(frozen=True)
class SnapshotTime:
    """A snapshot of the checkpoints that an attempt has published."""

    name: str
    holds: float
    """When it began to be written: it has what was done before."""
    published: float


@dataclass
class AttemptTimeline:
    """One attempt."""

    record: AttemptRecord
    restored: float | None = None
    base: str | None = None
    """The name of the snapshot that it began from; None in a job without checkpoints."""
    channels: float | None = None
    """When the last channel was there."""
    failure_found: float | None = None
    snapshots: list[SnapshotTime] = field(default_factory=list)
    hosts: dict[str, HostTimeline] = field(default_factory=dict)
    ranks: dict[Who, RankTimeline] = field(default_factory=dict)

    def rank(self, who: Who) -> RankTimeline:
        """What that rank did."""
        return self.ranks.setdefault(who, RankTimeline())

    def host(self, name: str) -> HostTimeline:
        """What that host did."""
        return self.hosts.setdefault(name, HostTimeline())


@dataclass(frozen=True)
class Timeline:
    """A job from its creation to its end, or to this moment."""

    created: float
    ended: float
    is_final: bool
    attempts: tuple[AttemptTimeline, ...]
    ranks: tuple[Who, ...]
    """All that were seen in any attempt, in their order; the hosts, where none was."""


def read(job: StartedJob, now: float) -> Timeline:
    """Read the logs of a job that this machine keeps; one that has not ended is taken as it is `now`.

    Raises EstimatorError for one that runs elsewhere.
    """
    record, folder = job.record(), job.path
    attempts = tuple(AttemptTimeline(attempt) for attempt in record.attempts)
    for path in job.log_files() if attempts else ():  # the first may have begun since the record was read
        number, host = whose_log(path.relative_to(folder), len(attempts))
        for frame in _frames(path):
            _take(attempts[number - 1], host, frame)
    if not any(rank.steps for attempt in attempts for rank in attempt.ranks.values()):
        _take_metrics(job, attempts)
    ranks = {who for attempt in attempts for who in attempt.ranks} or {(host, None) for host in record.hosts}
    order = {host: number for number, host in enumerate(record.hosts)}
    in_order = sorted(ranks, key=lambda who: (order.get(who[0], 0), -1 if who[1] is None else who[1]))
    created = record.created or (attempts[0].record.began if attempts else now)
    return Timeline(created, record.ended or now, record.is_final, attempts, tuple(in_order))


def events_in(path: Path) -> Iterator[tuple[float, AnyEvent]]:
    """The events in the log of a host, each with when it was written."""
    for frame in _frames(path):
        event = decode(frame.data) if frame.stream == EVENT else None
        if event is not None:
            yield frame.time_ns / 1e9, event


def whose_log(path: Path, current: int) -> tuple[int, str]:
    """The number of the attempt, and the host, of a log below a job's folder: those of earlier attempts are aside."""
    parts = path.parts
    return (int(parts[1]), parts[3]) if parts[0] == "attempts" else (current, parts[1])


def _frames(path: Path) -> Iterator[Frame]:
    parser = FrameParser()
    file = opened(path)
    if file is None:
        return
    with file:
        while data := file.read(READ_SIZE):
            yield from parser.feed(data)
    yield from parser.finish()


def _take(attempt: AttemptTimeline, host: str, frame: Frame) -> None:
    time = frame.time_ns / 1e9
    if frame.stream == EVENT:
        event = decode(frame.data)
        if event is not None:
            _take_event(attempt, host, time, event)
    elif frame.stream in (STDOUT, STDERR) and frame.rank < SPAWNED:
        rank = attempt.rank((host, None if frame.rank == NO_RANK else frame.rank))
        rank.output = _grown(rank.output, time)


def _take_event(attempt: AttemptTimeline, host: str, time: float, event: AnyEvent) -> None:
    match event:
        case events.PhaseStarted(phase="requirements") | events.PhaseEnded(phase="requirements"):
            attempt.host(host).requirements = _grown(attempt.host(host).requirements, time)
        case events.Stopping():
            attempt.host(host).stopping = time
        case events.Ended():
            attempt.host(host).ended = time
        case events.RankStarted() | events.RankEnded() if event.rank is not None and event.rank >= SPAWNED:
            pass
        case events.RankStarted():
            rank = attempt.rank((host, event.rank))
            rank.started = time if rank.started is None else rank.started
        case events.RankEnded():
            rank = attempt.rank((host, event.rank))
            rank.ended, rank.code = time, event.code
        case events.TrainingSteps():
            for number, first, last in zip(event.ranks, event.first, event.last, strict=False):
                attempt.rank((host, number)).steps[first] = Span(first, last)
        case agent_events.ChannelFetched():
            attempt.channels = time
        case agent_events.CheckpointRestored():
            attempt.restored, attempt.base = time, event.base
        case agent_events.CheckpointPublished():
            attempt.snapshots.append(SnapshotTime(event.snapshot, time - event.seconds, time))
        case events.FailureFound():
            attempt.failure_found = attempt.failure_found or time


def _take_metrics(job: StartedJob, attempts: Sequence[AttemptTimeline]) -> None:
    definitions = metric_definitions(job)
    if not definitions:
        return
    for line in (line for block in job.blocks(follow=False) for line in block.lines()):
        if any(values_in(line, definitions)):
            time = line.time_ns / 1e9
            begun = [attempt for attempt in attempts if attempt.record.began <= time]
            if begun and (line.rank is None or line.rank < SPAWNED):
                rank = begun[-1].rank((line.host, line.rank))
                rank.metrics = _grown(rank.metrics, time)


def _grown(span: Span | None, time: float) -> Span:
    if span is None:
        return Span(time, time)
    span.add(time)
    return span
