"""What is kept of a metric: its values on all ranks folded into a bounded curve."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

MOST_POINTS = 80
"""Points kept of a curve; when there would be more, neighbours become one."""


@dataclass
class Point:
    """Some values that follow each other on every rank, folded."""

    low: float
    high: float
    total: float
    count: int

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return self.total / self.count

    def fold(self, other: Point) -> Point:
        """This point and another one as a single point."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Point(low, high, self.total + other.total, self.count + other.count)


@dataclass
class Series:
    """The values of one metric: the n-th of each rank are one place of the curve."""

    count: int = 0
    """All values of all ranks."""
    points: dict[int, Point] = field(default_factory=dict)
    """Place -> the finite values there; a place is `_stride` values of a rank."""
    newest: dict[int | str, float] = field(default_factory=dict)
    """Rank, or host where there are no ranks -> its newest value."""
    _counts: dict[int | str, int] = field(default_factory=dict)
    _stride: int = 1

    def add(self, whose: int | str, value: float) -> None:
        """Add the next value of a rank, or of a host where there are no ranks; only finite values are drawn."""
        at = self._counts.get(whose, 0)
        self._counts[whose] = at + 1
        self.count += 1
        self.newest[whose] = value
        if not math.isfinite(value):
            return
        while at // self._stride >= MOST_POINTS:
            self._halve()
        _put(self.points, at // self._stride, Point(value, value, value, 1))

    @property
    def last(self) -> float:
        """The newest value of the lowest rank."""
        return self.newest[min(self.newest, key=lambda whose: (isinstance(whose, str), whose))]

    @property
    def extremes(self) -> tuple[float, float] | None:
        """The lowest and the highest value; None where none is finite."""
        if not self.points:
            return None
        return min(point.low for point in self.points.values()), max(point.high for point in self.points.values())

    def _halve(self) -> None:
        halved: dict[int, Point] = {}
        for place, point in self.points.items():
            _put(halved, place // 2, point)
        self.points, self._stride = halved, 2 * self._stride


def _put(points: dict[int, Point], place: int, point: Point) -> None:
    points[place] = points[place].fold(point) if place in points else point
