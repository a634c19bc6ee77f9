"""What the ranks of a job have told of where the time of their steps goes: its log, without a judgement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from estimator_container.contract.events import RankSlow, StepTimes

from ...telemetry.machines import logs_here
from .. import timeline
from ..timeline import Who

if TYPE_CHECKING:
    from ...backends.port import StartedJob

MOST_SAMPLES = 256  # of one process; where there would be more, every other one goes


@dataclass(frozen=True)
class StepSample:
    """What a process has told at one time, from the end of its first step on. Times are seconds; None is not known."""

    steps: int
    seconds: float
    input: float | None = None
    communication: float | None = None
    checkpoint: float | None = None
    idle: float | None = None


@dataclass
class AttemptRecords:
    """What one attempt has told."""

    samples: dict[Who, dict[int, list[StepSample]]] = field(default_factory=dict)
    """By rank and process."""
    slow: list[RankSlow] = field(default_factory=list)
    """The ranks that the toolkit has found to be slow while the job ran."""
    first: float | None = None
    """When the first of it was told, in seconds since 1970."""
    last: float | None = None

    def of_ranks(self) -> dict[Who, list[StepSample]]:
        """Of each rank what the process tells that has made most steps."""
        return {
            who: max(processes.values(), key=lambda samples: samples[-1].steps)
            for who, processes in self.samples.items()
        }

    def add(self, who: Who, pid: int, sample: StepSample) -> None:
        """A process has told this."""
        samples = self.samples.setdefault(who, {}).setdefault(pid, [])
        samples.append(sample)
        if len(samples) > MOST_SAMPLES:
            del samples[:-1:2]


def read(job: StartedJob) -> AttemptRecords:
    """Those of the newest attempt that has told anything. Raises EstimatorError for a job that runs elsewhere."""
    count = len(job.record().attempts)
    attempts = [AttemptRecords() for _ in range(max(1, count))]
    for path in logs_here(job):
        number, host = timeline.whose_log(path.relative_to(job.path), len(attempts))
        for time, event in timeline.events_in(path):
            _take(attempts[number - 1], host, time, event)
    told = [attempt for attempt in attempts if attempt.samples]
    return (told or attempts)[-1]


def _take(attempt: AttemptRecords, host: str, time: float, event: object) -> None:
    match event:
        case RankSlow():
            attempt.slow.append(event)
        case StepTimes():
            attempt.first = time if attempt.first is None else min(attempt.first, time)
            attempt.last = time if attempt.last is None else max(attempt.last, time)
            for rank, pid, sample in _samples(event):
                attempt.add((host, rank), pid, sample)


def _samples(event: StepTimes) -> Iterator[tuple[int | None, int, StepSample]]:
    facts: Sequence[Sequence[float | None]] = (event.input, event.communication, event.checkpoint, event.idle)
    told = zip(event.ranks, event.pids, event.steps, event.seconds, *facts, strict=False)
    for rank, pid, steps, seconds, *spent in told:
        if steps > 0:
            yield rank, pid, StepSample(steps, seconds, *spent)
