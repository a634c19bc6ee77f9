"""What is measured of a job: the curves of its model, and what its machines do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimator_container.telemetry.metric_table import KINDS, METRICS

from ...errors import InvalidArgument
from ...telemetry import machines
from ...values.naming import suggestion
from ..jobs.curve_bands import bands, finite
from .operation import Operation, Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..state import Console
    from .operation import Values

_MOST_POINTS = 1000


def _curves(console: Console, values: Values) -> object:
    job = console.job(values.job)
    parts, is_complete = console.curves(job).parts()
    name = values.text("name")
    if name is None:
        return {"is_complete": is_complete, "curves": bands(parts)}
    chosen = [part for part in parts if part.name == name]
    by_rank = [
        {
            "host": part.host,
            "rank": part.rank,
            "steps": part.steps,
            "times": part.times,
            "mean": [finite(each) for each in part.mean],
        }
        for part in chosen
    ]
    return {"is_complete": is_complete, "name": name, "ranks": by_rank}


def _machines(console: Console, values: Values) -> object:
    job = console.job(values.job)
    metric = values.text("metric")
    if metric is not None and metric not in KINDS:
        raise InvalidArgument("metric", f"metric {metric!r} is not known; {suggestion(metric, KINDS)}")
    question = machines.Question(
        metrics=None if metric is None else (metric,),
        hosts=_hosts(values.text("host"), job.record().hosts),
        start=values.real("start"),
        end=values.real("end"),
        points=values.number("points") or 200,
        resolution=values.real("resolution"),
    )
    found = machines.read(job, question)
    series = [
        {
            "metric": each.metric,
            "host": each.host,
            "rank": each.rank,
            "is_of_rank": each.is_of_rank,
            "part": each.part,
            "times": each.times,
            "low": [finite(value) for value in each.low],
            "mean": [finite(value) for value in each.mean],
            "high": [finite(value) for value in each.high],
        }
        for each in found.series
    ]
    return {"series": series, "resolution": found.resolution, "cursor": found.cursor}


def _hosts(given: str | None, known: Sequence[str]) -> list[str] | None:
    """Those that are named. Raises InvalidArgument for one that the job does not have."""
    if given is None:
        return None
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise InvalidArgument("host", f"host {name[:80]!r} is not in this job; {suggestion(name, known)}")
    return names


def _table(console: Console, values: Values) -> object:
    return {
        "metrics": [
            {"name": each.name, "unit": each.unit, "is_of_rank": each.is_of_ranks, "meaning": each.meaning}
            for each in METRICS
        ]
    }


OPERATIONS = (
    Operation(
        "/api/jobs/{job}/curves",
        "The metrics of the model: over steps the least, the mean and the greatest value of all ranks, or of one "
        "metric the curve of each rank. Ask again until `is_complete`.",
        (Parameter("name", "string", "A metric, of which the curve of each rank is wanted."),),
        _curves,
    ),
    Operation(
        "/api/jobs/{job}/machines",
        "What the hosts measured of themselves and their ranks. `cursor` is the `start` for what is new, with the same "
        "`resolution`.",
        (
            Parameter("metric", "string", "One metric; all without it."),
            Parameter("host", "string", "Only these hosts, by their names with commas between; all without it."),
            Parameter("start", "number", "Seconds since 1970."),
            Parameter("end", "number", "Seconds since 1970."),
            Parameter("points", "integer", "About how many points a series has.", 200, 1, _MOST_POINTS),
            Parameter("resolution", "number", "Seconds from one point to the next.", None, 2, 86400),
        ),
        _machines,
    ),
    Operation("/api/metrics", "The table of what is measured, with units.", (), _table),
)
