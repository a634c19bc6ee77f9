"""What is measured of a job: the curves of its model, and what its machines do."""

from __future__ import annotations

import math
import time
from itertools import islice
from typing import TYPE_CHECKING

from estimator_container.telemetry.metric_table import KINDS, METRICS

from ...errors import InvalidArgument
from ...telemetry import machines
from ...values.naming import suggestion
from ..jobs.curve_bands import bands, finite
from .operation import Operation, Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...backends.port import State
    from ..state import Console
    from .operation import Values

_MOST_POINTS = 1000
_MOST_ROWS = 4 * _MOST_POINTS
"""Of a series, where it is asked for by its resolution."""
_MOST_METRICS = 500


def _curves(console: Console, values: Values) -> object:
    job = console.job(values.job)
    parts, is_complete = console.curves(job).parts()
    name = values.text("name")
    if name is None:
        text = (values.text("text") or "").casefold()
        found = dict.fromkeys(part.name for part in parts if text in part.name.casefold())
        shown = set(islice(found, values.number("limit")))
        return {
            "is_complete": is_complete,
            "total": len(found),
            "curves": bands(part for part in parts if part.name in shown),
        }
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
    record = job.record()
    _check_rows(values, record)
    question = machines.Question(
        metrics=None if metric is None else (metric,),
        hosts=_hosts(values.text("host"), record.hosts),
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


def _check_rows(values: Values, record: State) -> None:
    """Raises InvalidArgument for more points than an answer may have."""
    resolution = values.real("resolution")
    start = max(values.real("start") or 0.0, record.created or 0.0)
    end = min(values.real("end") or math.inf, record.ended or time.time())
    if resolution is not None and end - start > _MOST_ROWS * resolution:
        least = math.ceil((end - start) / _MOST_ROWS)
        what = f"resolution {resolution:g} makes more than {_MOST_ROWS} points of a series in that time"
        raise InvalidArgument("resolution", f"{what}; give at least {least}, or a later start")


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
        "metric the curve of each rank. Ask again until `is_complete`; `total` is how many metrics there are.",
        (
            Parameter("name", "string", "A metric, of which the curve of each rank is wanted."),
            Parameter("text", "string", "Only metrics with this in their name."),
            Parameter("limit", "integer", "Metrics of one answer, those that came first.", 100, 1, _MOST_METRICS),
        ),
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
