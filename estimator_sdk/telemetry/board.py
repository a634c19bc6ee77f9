"""A job at this moment as a board: its state, a row for each host, a row for each rank. What is shown, not how."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from estimator_container.telemetry import metric_table as table

from .curves import Curves
from .machines import MachineSeries, Question, read

if TYPE_CHECKING:
    from ..backends.port import StartedJob

NEWEST_SECONDS = 60.0
"""What was measured before that is not shown as what is now."""
MOST_METRICS = 4
"""Metrics of the model that there is room for."""


@dataclass
class HostRow:
    """What a host does; None is not known."""

    host: str
    cpu: float | None = None
    """Share of its CPUs."""
    memory: float | None = None
    """Bytes, as the limit."""
    memory_limit: float | None = None
    disk_read: float | None = None
    """Bytes a second, as the others."""
    disk_write: float | None = None
    receive: float | None = None
    transmit: float | None = None
    pressure: float | None = None
    """The highest share of time in which some task waited for a resource."""
    gpus: list[float] = field(default_factory=list)
    """Share of the time in which each works."""


@dataclass
class RankRow:
    """What a rank does; None is not known."""

    host: str
    rank: int | None
    cpu: float | None = None
    """CPUs, not a share of them."""
    memory: float | None = None
    threads: float | None = None
    disk: float | None = None
    """Bytes a second, read and written."""
    step: float | None = None
    """The step of the newest value of a metric."""
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Board:
    """All of it."""

    name: str
    status: str
    is_final: bool
    attempt: int
    seconds: float | None
    """Since the job was created, to its end."""
    hosts: list[HostRow]
    ranks: list[RankRow]
    metrics: list[str]
    """Names of the metrics that are shown."""


class BoardReader:
    """Reads the board of a job again and again."""

    def __init__(self, job: StartedJob) -> None:
        """Raises EstimatorError for a job that runs elsewhere."""
        self._job = job
        self._curves = Curves(job, points=2)

    def read(self) -> Board:
        """The board now; of a job that has ended, as it was before that."""
        record = self._job.record()
        now = time.time() if record.ended is None else record.ended
        self._curves.refresh()
        found = read(self._job, Question(start=now - NEWEST_SECONDS, end=now + 1, resolution=2))
        hosts = {host: HostRow(host) for host in record.hosts}
        ranks: dict[tuple[str, int | None], RankRow] = {}
        cpus = {one.host: one.mean[-1] for one in found.series if one.metric == table.CPU_COUNT}
        for one in found.series:
            if one.is_of_rank:
                row = ranks.setdefault((one.host, one.rank), RankRow(one.host, one.rank))
                _put_rank(row, one, cpus.get(one.host, 1.0))
            elif one.host in hosts:
                _put_host(hosts[one.host], one)
        shown = self._curves.names[:MOST_METRICS]
        for part in self._curves.parts(names=shown):
            row = ranks.setdefault((part.host, part.rank), RankRow(part.host, part.rank))
            row.metrics[part.name] = part.newest
            row.step = max(row.step or 0.0, part.newest_step)
        order = sorted(ranks.values(), key=lambda row: (-1 if row.rank is None else row.rank, row.host))
        since = None if record.created is None else now - record.created
        attempt = len(record.attempts)
        return Board(record.name, record.status, record.is_final, attempt, since, [*hosts.values()], order, shown)


def _put_host(row: HostRow, one: MachineSeries) -> None:
    value = one.mean[-1]
    match one.metric, one.part:
        case table.CPU, _:
            row.cpu = value
        case table.MEMORY, _:
            row.memory = value
        case table.MEMORY_LIMIT, _:
            row.memory_limit = value
        case table.DISK, table.READ:
            row.disk_read = value
        case table.DISK, table.WRITE:
            row.disk_write = value
        case table.NETWORK, table.RECEIVE:
            row.receive = value
        case table.NETWORK, table.TRANSMIT:
            row.transmit = value
        case table.PRESSURE, part if " " not in part:
            row.pressure = max(row.pressure or 0.0, value)
        case table.GPU, _:
            row.gpus.append(value)


def _put_rank(row: RankRow, one: MachineSeries, cpus: float) -> None:
    value = one.mean[-1]
    match one.metric:
        case table.RANK_CPU:
            row.cpu = value * cpus
        case table.RANK_MEMORY:
            row.memory = value
        case table.RANK_THREADS:
            row.threads = value
        case table.RANK_DISK:
            row.disk = (row.disk or 0.0) + value
