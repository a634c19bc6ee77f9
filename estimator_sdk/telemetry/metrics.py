"""The metrics of a job: what its definitions find in the lines of its log."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from estimator_container.logs.lines import Line

    from ..backends.port import StartedJob


class Metric(NamedTuple):
    """One value that a metric definition found in the log."""

    name: str
    value: float
    time: float
    """When the line was written: seconds since 1970."""
    rank: int | None


def metric_definitions(job: StartedJob) -> Sequence[tuple[str, re.Pattern[str]]]:
    """The names of a job's metrics, and what finds their values in a line; warns of a pattern that Python cannot read.

    Only an Estimator has checked them: a document, or another service, may have any.
    """
    found = []
    for each in job.request().get("AlgorithmSpecification", {}).get("MetricDefinitions") or []:
        try:
            found.append((each["Name"], re.compile(each["Regex"])))
        except (re.error, RecursionError, OverflowError) as error:
            what = f"the metric {each['Name']!r} is left out, because its pattern {each['Regex']!r} is not valid"
            warnings.warn(f"{what}: {error}", stacklevel=3)
    return found


def values_in(line: Line, definitions: Sequence[tuple[str, re.Pattern[str]]]) -> Iterator[tuple[str, float]]:
    """The metrics that are in a line of the log."""
    text = line.data.decode("utf-8", "replace") if definitions else ""
    for name, pattern in definitions:
        for match in pattern.finditer(text):
            try:
                yield name, float(match.group(1))
            except (ValueError, IndexError, TypeError):  # TypeError: the group took no part in the match
                continue
