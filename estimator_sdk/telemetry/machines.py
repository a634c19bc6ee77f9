"""What the hosts of a job measured of themselves and their ranks, as few points of each series."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract.names import Layout
from estimator_container.telemetry import history
from estimator_container.telemetry.history import LEVELS, MachineSample
from estimator_container.telemetry.metric_table import KINDS, METRICS, SeriesKey

from ..errors import EstimatorError

if TYPE_CHECKING:
    from ..backends.port import StartedJob

FINEST = LEVELS[0]
LATE_SECONDS = 60.0
"""A host that is behind another by more has ended, or its clock is of no use."""
_ORDER = {kind.name: place for place, kind in enumerate(METRICS)}


@dataclass(frozen=True)
class MachineSeries:
    """One metric of a host or of a rank. The lists are equally long; where nothing was measured there is no point."""

    metric: str
    """As the table in docs/telemetry.md has it, such as `system.cpu.utilization`."""
    unit: str
    """Of the values, as UCUM writes it: `1` is a share, `By` bytes, `By/s` bytes a second."""
    host: str
    rank: int | None
    """None for what the host has, and for a script without a world."""
    part: str
    """Which of several, such as `read` and `write`, or the number of a GPU; empty where there is one."""
    times: list[float]
    """When each point begins: seconds since 1970."""
    low: list[float]
    mean: list[float]
    high: list[float]

    @property
    def is_of_rank(self) -> bool:
        """Whether it is one of a rank's processes."""
        return KINDS[self.metric].is_of_ranks


@dataclass(frozen=True)
class Measurements:
    """The answer to one question."""

    series: list[MachineSeries]
    """In the order of the table, and then of hosts and ranks."""
    resolution: float
    """Seconds from one point to the next."""
    cursor: float | None
    """When the first point begins that may still change, of whichever host: what to give as `start` for what is new,
    with the same `resolution`. None where nothing was measured."""


@dataclass(frozen=True)
class Question:
    """What is asked for; None is everything."""

    metrics: Collection[str] | None = None
    hosts: Collection[str] | None = None
    ranks: Collection[int] | None = None
    """Of the metrics of ranks; what a host has is always there."""
    start: float | None = None
    end: float | None = None
    points: int = 300
    resolution: float | None = None


def read(job: StartedJob, question: Question) -> Measurements:
    """Read what the hosts of a job measured. Raises EstimatorError for a job that runs elsewhere."""
    folders = list(_folders(job, question.hosts))
    firsts = {folder: _first_times(folder) for _, folder in folders}
    start, end = _span(question, firsts)
    if start is None or end is None or end < start:
        return Measurements([], question.resolution or FINEST.seconds, question.start)
    resolution = question.resolution or _resolution((end - start) / max(1, question.points))
    start = start // resolution * resolution
    buckets: dict[tuple[str, SeriesKey], dict[int, _Bucket]] = {}
    for host, folder in folders:
        for seconds, key, samples in _samples(folder, question.metrics, start, end, resolution, firsts[folder]):
            if not KINDS[key.metric].is_of_ranks or question.ranks is None or key.rank in question.ranks:
                _fold(samples, seconds, resolution, buckets.setdefault((host, key), {}))
    hosts = {host: place for place, host in enumerate(job.record().hosts)}
    found = [_series(host, key, each, resolution) for (host, key), each in buckets.items()]
    found.sort(key=lambda one: (_ORDER[one.metric], hosts.get(one.host, 0), _number(one.rank), one.part))
    cursor = min(end, _settled(folders)) // resolution * resolution if found else question.start
    return Measurements(found, resolution, cursor)


def _settled(folders: Sequence[tuple[str, str]]) -> float:
    """Up to when all hosts have told: one may be behind the others by its clock, or by the way of its rows."""
    last: dict[str, float] = {}
    for host, folder in folders:
        last[host] = max(last.get(host, 0.0), (history.last_time_ms(folder, FINEST) or 0) / 1000)
    least = max(last.values()) - LATE_SECONDS
    return min(max(time, least) for time in last.values() if time >= least or not time)


def _number(rank: int | None) -> int:
    return -1 if rank is None else rank


def logs_here(job: StartedJob) -> list[Path]:
    """The framed logs of a job whose hosts leave what they measure on this machine, beside these.

    Raises EstimatorError for a job that runs elsewhere, with where its platform has it.
    """
    files = job.log_files()
    if not files:
        record = job.record()
        if record.attempts and not job.log_files():  # else the first attempt has just begun
            raise EstimatorError(
                f"{job.name} runs on {record.backend}, so what its machines measure is not on this machine: the "
                "platform has it; for SageMaker that is CloudWatch, in the namespace /aws/sagemaker/TrainingJobs"
            )
    return files


def host_of(log: Path) -> str:
    """The host whose log that is, by `Layout.frames`."""
    return log.parents[len(Path(Layout("").frames).parts) - 1].name


def _folders(job: StartedJob, hosts: Collection[str] | None) -> Iterator[tuple[str, str]]:
    for log in logs_here(job):
        host = host_of(log)
        if hosts is None or host in hosts:
            yield host, str(log.parent / Path(Layout("").telemetry).name)


def _span(question: Question, firsts: Mapping[str, list[int | None]]) -> tuple[float | None, float | None]:
    """From when to when; None where nothing was measured."""
    start, end = question.start, question.end
    if start is None:
        start = min((first / 1000 for each in firsts.values() for first in each if first is not None), default=None)
    if end is None:
        lasts = [history.last_time_ms(folder, FINEST) for folder in firsts]
        end = max((last / 1000 for last in lasts if last is not None), default=None)
    return start, end


def _first_times(folder: str) -> list[int | None]:
    """When what each level has begins, in milliseconds; None where it has nothing.

    A coarse row begins before its host did. Where that row is the first, and has the first row of the finer level in
    it, nothing came before that one.
    """
    found: list[int | None] = []
    for level in LEVELS:
        first = history.first_time_ms(folder, level)
        finer = found[-1] if found else None
        has_finer = first is not None and finer is not None and first <= finer < first + 1000 * level.seconds
        found.append(finer if has_finer else first)
    return found


def _resolution(seconds: float) -> float:
    """Seconds of a point, at least so many: whole rows of the coarsest level that is fine enough."""
    level = next((each for each in reversed(LEVELS) if each.seconds <= seconds), FINEST)
    return level.seconds * max(1, math.ceil(seconds / level.seconds))


def _samples(
    folder: str,
    metrics: Collection[str] | None,
    start: float,
    end: float,
    resolution: float,
    firsts: Sequence[int | None],
) -> Iterator[tuple[int, SeriesKey, list[MachineSample]]]:
    """What a host has of that time, after the seconds of a row: of levels that fit the coarsest, with least to read.

    Where that begins too late, a coarser one has the rest, unless there is none; where it ends too early, for its last
    row is not over, a finer one. `firsts` is from `_first_times`.
    """
    at, last = int(1000 * start), math.ceil(1000 * end)
    for place, level in reversed(list(enumerate(LEVELS))):
        if level != FINEST and (resolution < level.seconds or resolution % level.seconds):
            begun = min((time for time in firsts[:place] if time is not None), default=last + 1)
            until = begun if firsts[place] != begun else at
        elif level != FINEST:
            row = history.last_time_ms(folder, level)
            until = at if row is None else row + 1000 * level.seconds
        else:
            until = last + 1
        if until > at:
            for key, samples in history.read(folder, level, at, min(until - 1, last), metrics).items():
                yield level.seconds, key, samples
            at = until


@dataclass
class _Bucket:
    """The samples of one point."""

    low: float
    high: float
    total: float = 0.0
    """The sum of the means, each times the seconds of its row."""
    seconds: int = 0


def _fold(samples: Sequence[MachineSample], seconds: int, resolution: float, buckets: dict[int, _Bucket]) -> None:
    for sample in samples:
        place = int(sample.time // resolution)
        bucket = buckets.get(place)
        if bucket is None:
            bucket = buckets[place] = _Bucket(sample.low, sample.high)
        bucket.low, bucket.high = min(bucket.low, sample.low), max(bucket.high, sample.high)
        bucket.total, bucket.seconds = bucket.total + seconds * sample.mean, bucket.seconds + seconds


def _series(host: str, key: SeriesKey, buckets: dict[int, _Bucket], resolution: float) -> MachineSeries:
    points = sorted(buckets.items())
    return MachineSeries(
        metric=key.metric,
        unit=KINDS[key.metric].unit,
        host=host,
        rank=key.rank,
        part=key.part,
        times=[place * resolution for place, _ in points],
        low=[bucket.low for _, bucket in points],
        mean=[bucket.total / bucket.seconds for _, bucket in points],
        high=[bucket.high for _, bucket in points],
    )
