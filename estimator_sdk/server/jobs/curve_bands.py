"""The curves of a job, read in the background, and folded over its ranks: a band for each metric."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...telemetry.curves import Curves
from ..logs.selection import is_here

if TYPE_CHECKING:
    from ...backends.port import StartedJob
    from ...telemetry.curve import CurvePart

MOST_POINTS = 300
"""Points of a band."""
_PATIENCE = 0.2  # seconds that a client waits for what is being read
_PAUSE = 1.0  # seconds between two readings: a page that asks more often gets the same again
_SHARE = 20
"""Times as long as a reading took, what a service was asked for is given again: all of a log is asked for each time."""


class CurveReader:
    """The curves of one job. Any thread may ask; the first reading of a long log goes on while it answers."""

    def __init__(self, job: StartedJob) -> None:
        self._is_here = is_here(job)
        self._curves = Curves(job, MOST_POINTS)
        self._parts: list[CurvePart] = []
        self._is_read = threading.Event()
        self._lock = threading.Lock()
        self._again_at = 0.0
        self._error: Exception | None = None

    def parts(self) -> tuple[list[CurvePart], bool]:
        """The curves of each rank as far as they are known, and whether that is all of what is written.

        Raises what reading the log raises.
        """
        if self._lock.acquire(blocking=False):
            if time.monotonic() < self._again_at:
                self._lock.release()
            else:
                self._is_read.clear()
                threading.Thread(target=self._read, name="curves", daemon=True).start()
        is_complete = self._is_read.wait(_PATIENCE)
        if self._error is not None:
            raise self._error
        return self._parts, is_complete

    def _read(self) -> None:
        """Read on; the caller has the lock, which is let go here."""
        began = time.monotonic()
        try:
            if self._curves.refresh() or not self._parts:
                self._parts = self._curves.parts()
            self._error = None
        except Exception as error:  # told to whoever asks
            self._error = error
        finally:
            now = time.monotonic()
            self._again_at = now + (_PAUSE if self._is_here else max(_PAUSE, _SHARE * (now - began)))
            self._is_read.set()
            self._lock.release()


def bands(parts: Iterable[CurvePart]) -> list[dict[str, object]]:
    """One band a metric: over steps the least, the mean and the greatest value of all ranks.

    A number that is not finite is None, which is where a curve has a gap.
    """
    by_name: dict[str, list[CurvePart]] = {}
    for part in parts:
        by_name.setdefault(part.name, []).append(part)
    return [_band(name, each) for name, each in by_name.items()]


def _band(name: str, parts: Sequence[CurvePart]) -> dict[str, object]:
    steps = [step for part in parts for step in part.steps]
    first, last = min(steps), max(steps)
    width = max((last - first) / MOST_POINTS, math.ulp(abs(last) + 1))
    points: dict[int, _BandPoint] = {}
    for part in parts:
        for step, at, low, mean, high, count in zip(
            part.steps, part.times, part.low, part.mean, part.high, part.counts, strict=True
        ):
            place = int((step - first) / width)
            points.setdefault(place, _BandPoint(step, at)).add(low, mean, high, count)
    ordered = [point for _, point in sorted(points.items())]
    newest = [part.newest for part in parts]
    return {
        "name": name,
        "ranks": [part.rank for part in parts],
        "steps": [point.step for point in ordered],
        "times": [point.time for point in ordered],
        "low": [finite(point.low) for point in ordered],
        "mean": [finite(point.mean) for point in ordered],
        "high": [finite(point.high) for point in ordered],
        "newest": [finite(min(newest)), finite(max(newest))],
        "not_finite": sum(sum(part.not_finite) for part in parts),
    }


class _BandPoint:
    """The values of all ranks at about one step."""

    def __init__(self, step: float, at: float) -> None:
        self.step, self.time = step, at
        self.low, self.high = math.inf, -math.inf
        self._total, self._count = 0.0, 0

    @property
    def mean(self) -> float:
        """The mean of the finite values; NaN where there is none."""
        return self._total / self._count if self._count else math.nan

    def add(self, low: float, mean: float, high: float, count: int) -> None:
        """Take a point of one rank; one without a finite value changes nothing."""
        if math.isfinite(mean):
            self.low, self.high = min(self.low, low), max(self.high, high)
            self._total, self._count = self._total + mean * count, self._count + count


def finite(value: float) -> float | None:
    """JSON has no other numbers."""
    return value if math.isfinite(value) else None
