"""What the hosts of a job had to do while it made its steps, as far as they measured themselves."""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from estimator_container.telemetry import metric_table as table

from ...errors import EstimatorError
from ...telemetry import machines

if TYPE_CHECKING:
    from ...backends.port import StartedJob


@dataclass(frozen=True)
class HostLoad:
    """The mean of one host over that time."""

    host: str
    cpus: float
    """That it may use."""
    cpu: float
    """Share of them that was busy."""
    disk_pressure: float
    """Share of the time in which some task waited for a disk; 0 where it is not known."""
    gpu: float | None = None
    """Share of the time in which its GPUs worked, the mean of them; None without any."""
    free: float = 0.0
    """Bytes of its memory that nobody used; 0 where that is not known."""
    cpu_pressure: float = 0.0
    """Share of the time in which some task waited for a CPU; 0 where it is not known. A container whose kernel has
    version 1 of cgroups reads that of its machine, so what others do there is in it."""


def read(job: StartedJob, first: float | None, last: float | None) -> tuple[HostLoad, ...]:
    """That of the time between; empty where nothing was measured."""
    if first is None or last is None:
        return ()
    question = machines.Question(
        (table.CPU, table.CPU_COUNT, table.PRESSURE, table.GPU, table.MEMORY, table.MEMORY_LIMIT),
        start=first,
        end=last + 1,
        points=1,
    )
    means: dict[str, dict[tuple[str, str], float]] = {}
    with contextlib.suppress(EstimatorError, OSError):
        for series in machines.read(job, question).series:
            means.setdefault(series.host, {})[series.metric, series.part] = statistics.mean(series.mean)
    return tuple(
        HostLoad(
            host,
            each[table.CPU_COUNT, ""],
            each[table.CPU, ""],
            each.get((table.PRESSURE, "io"), 0.0),
            statistics.mean(gpus)
            if (gpus := [value for (name, _), value in each.items() if name == table.GPU])
            else None,
            max(0.0, each.get((table.MEMORY_LIMIT, ""), 0.0) - each.get((table.MEMORY, ""), 0.0)),
            each.get((table.PRESSURE, "cpu"), 0.0),
        )
        for host, each in means.items()
        if (table.CPU_COUNT, "") in each and (table.CPU, "") in each
    )
