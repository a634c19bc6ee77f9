"""One curve: any number of values in a bounded number of points."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from dataclasses import dataclass

MOST_POINTS = 512


@dataclass(frozen=True)
class CurvePart:
    """The points of a curve from one on. The lists are equally long."""

    name: str
    host: str
    rank: int | None
    """None for a script without a world."""
    begins: int
    """The place of the first of these points in the curve: what a reader has from there on is replaced by them."""
    steps: list[float]
    """The step of the first value of each point; where the script tells none, values are counted from 1."""
    times: list[float]
    """When that was: seconds since 1970."""
    low: list[float]
    mean: list[float]
    high: list[float]
    """Of the finite values of each point; NaN where none is."""
    counts: list[int]
    """How many values each point has."""
    not_finite: list[int]
    """How many of them are NaN or infinite."""
    newest: float
    """The last value of the curve."""
    newest_step: float
    """Its step."""


class Curve:
    """The values of one metric of one rank, in the order in which they came."""

    def __init__(self, name: str, host: str, rank: int | None, most_points: int = MOST_POINTS) -> None:
        self.name, self.host, self.rank = name, host, rank
        self.values = 0
        self.newest = self.newest_step = math.nan
        self._most = max(2, most_points)
        self._stride = 1
        """Values of a point; of the last one there may be fewer."""
        self._steps, self._times = array("d"), array("d")
        self._low, self._total, self._high = array("d"), array("d"), array("d")
        self._counts, self._not_finite = array("q"), array("q")
        self._news = array("q")
        """The number of the newest value of each point, among those of all curves."""
        self._folded = 0
        """The number of the value with which neighbours last became one."""

    def add(self, step: int | None, time: float, value: float, number: int) -> None:
        """Add the next value; `number` counts the values of all curves."""
        self.values += 1
        self.newest, self.newest_step = value, float(self.values if step is None else step)
        if not self._counts or self._counts[-1] >= self._stride:
            if len(self._counts) >= self._most:
                self._fold(number)
            if not self._counts or self._counts[-1] >= self._stride:
                self._begin(self.newest_step, time)
        at = len(self._counts) - 1
        self._counts[at] += 1
        self._news[at] = number
        if math.isfinite(value):
            self._low[at], self._high[at] = min(self._low[at], value), max(self._high[at], value)
            self._total[at] += value
        else:
            self._not_finite[at] += 1

    def part(self, since: int = 0) -> CurvePart | None:
        """The points that have changed since the value with that number; None where none has."""
        first = 0 if since < self._folded else bisect_right(self._news, since)
        if first >= len(self._counts):
            return None
        finite = [count - lost for count, lost in zip(self._counts[first:], self._not_finite[first:], strict=True)]
        nan = math.nan
        return CurvePart(
            self.name,
            self.host,
            self.rank,
            first,
            self._steps[first:].tolist(),
            self._times[first:].tolist(),
            [low if count else nan for low, count in zip(self._low[first:], finite, strict=True)],
            [total / count if count else nan for total, count in zip(self._total[first:], finite, strict=True)],
            [high if count else nan for high, count in zip(self._high[first:], finite, strict=True)],
            self._counts[first:].tolist(),
            self._not_finite[first:].tolist(),
            self.newest,
            self.newest_step,
        )

    def _begin(self, step: float, time: float) -> None:
        self._steps.append(step)
        self._times.append(time)
        self._low.append(math.inf)
        self._high.append(-math.inf)
        for column in (self._total, self._counts, self._not_finite, self._news):
            column.append(0)

    def _fold(self, number: int) -> None:
        """Make one point of each two; the last one of an odd number stays, and takes more."""
        self._stride *= 2
        self._folded = number
        pairs = range(0, len(self._counts), 2)
        self._steps = array("d", (self._steps[at] for at in pairs))
        self._times = array("d", (self._times[at] for at in pairs))
        self._low = array("d", (min(self._low[at : at + 2]) for at in pairs))
        self._high = array("d", (max(self._high[at : at + 2]) for at in pairs))
        self._total = array("d", (sum(self._total[at : at + 2]) for at in pairs))
        self._counts = array("q", (sum(self._counts[at : at + 2]) for at in pairs))
        self._not_finite = array("q", (sum(self._not_finite[at : at + 2]) for at in pairs))
        self._news = array("q", (max(self._news[at : at + 2]) for at in pairs))
