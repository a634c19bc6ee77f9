"""What a metric is made of, and the loop that takes all of them: interleaved, repeated, with the load beside."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Role = Literal["floor", "peer", "ours"]
Unit = Literal["s", "ms", "us", "lines/s", "lines", "samples/s", "MB", "B", "CPU s/GiB", "%"]
Reading = float | tuple[float | None, ...]
"""None where a way has nothing to show in one of the panels."""
FEW = 3
"""Runs of a way of which each takes most of a minute, or of a peer so far behind that more would tell nothing."""
MEMORY = "/dev/shm"
"""For the files of a way: a disk would be busy with them while the next way runs."""
SCALE: Mapping[str, float] = {"ms": 1e3, "us": 1e6}
"""Times are read in seconds and shown in the panel's unit; everything else is read as it is shown."""


@dataclass(frozen=True)
class Target:
    """What a panel's figure of ours is held to, as `at_most` (or `at_least`) times a reference, and a constant."""

    ours: str
    """The way."""
    reference: str | tuple[str, ...] | None = None
    """The way that it is compared with; of several the best; None for the constant alone."""
    factor: float = 1.0
    plus: float = 0.0
    """In seconds, or in the panel's unit if that is no time."""
    of: Literal["median", "slope"] = "median"
    n: tuple[int, ...] | None = None
    """Where it holds; None for all that were taken."""


@dataclass(frozen=True)
class Panel:
    """One plot and one table: what several ways need, over a range of N."""

    title: str
    axis: str
    """What N counts."""
    unit: Unit
    targets: tuple[Target, ...] = ()
    higher_is_better: bool = False


@dataclass(frozen=True)
class Way:
    """A way to do the thing that a panel is about."""

    name: str
    role: Role
    run: Callable[[], Reading]
    """Does it once, and returns a reading for each panel of the case."""
    peer: str | None = None
    """Whose program it needs, of `peers.PEERS`."""
    at_most: int | None = None
    """How many times, of one that takes minutes; it is then not warmed up either."""


@dataclass(frozen=True)
class Case:
    """The ways that are compared at one N. A metric yields its cases, and what they stand on lives until the next."""

    panels: tuple[Panel, ...]
    n: int
    ways: tuple[Way, ...]
    runs: int | None = None
    """Of each way; as many as elsewhere without it."""


@dataclass(frozen=True)
class Extent:
    """How much of everything is taken."""

    runs: int
    quick: bool
    left_out: frozenset[str] = frozenset()
    """The peers that the user does without."""
    large: bool = False
    """Only what is too large for a run of everything."""

    @property
    def many(self) -> int:
        """Runs where a target is a matter of a few per cent, and readings spread by more."""
        return self.runs * 3 // 2

    def pick(self, full: Sequence[int], quick: Sequence[int], large: Sequence[int] = ()) -> Sequence[int]:
        if self.large:
            return large
        return quick if self.quick else full


@dataclass(frozen=True)
class Table:
    """Facts beside the figures, such as how long each phase took."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: str = ""


@dataclass(frozen=True)
class Metric:
    """A row of the list of what is measured."""

    number: str
    title: str
    about: str
    """What is timed from when to when, what the floor is, what the peers do."""
    cases: Callable[[Extent], Iterator[Case]]
    peers: tuple[str, ...] = ()
    """Those it needs, of `peers.PEERS`."""
    tables: Callable[[], Sequence[Table]] = tuple
    """Called after the last case."""


@dataclass
class Points:
    """What one way gave: N -> readings."""

    role: Role
    values: dict[int, list[float]] = field(default_factory=dict)

    def median(self, n: int) -> float:
        return statistics.median(self.values[n])

    def fit(self) -> tuple[float, float] | None:
        """a and b of T(N) = a + b N through the medians, by least squares; None for fewer than three N."""
        if len(self.values) < 3:
            return None
        line = statistics.linear_regression(list(self.values), [self.median(n) for n in self.values])
        return line.intercept, line.slope


@dataclass
class Taken:
    """A panel that was taken."""

    panel: Panel
    ways: dict[str, Points] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)
    """Of the machine over a minute, before each case."""

    def add(self, way: Way, n: int, value: float) -> None:
        self.ways.setdefault(way.name, Points(way.role)).values.setdefault(n, []).append(value)


def take(metric: Metric, extent: Extent, say: Callable[[str], None]) -> list[Taken]:
    """Take all cases of a metric, and return its panels in the order in which they came."""
    taken: dict[str, Taken] = {}
    for case in metric.cases(extent):
        started = time.monotonic()
        panels = [taken.setdefault(panel.title, Taken(panel)) for panel in case.panels]
        for each in panels:
            each.loads.append(os.getloadavg()[0])
        ways = [way for way in case.ways if way.peer not in extent.left_out]
        for way, readings in interleaved(ways, case.runs or extent.runs):
            for each, value in zip(panels, readings, strict=True):
                if value is not None:
                    each.add(way, case.n, value)
        seconds = time.monotonic() - started
        say(f"  {case.panels[0].title}, {case.panels[0].axis} {case.n}, {seconds:.0f} s: {summary(panels[0], case.n)}")
    return list(taken.values())


def interleaved(ways: Sequence[Way], runs: int) -> Iterator[tuple[Way, tuple[float | None, ...]]]:
    """Run every way `runs` times, in an order that turns round each time, after one warm-up each."""
    for way in ways:
        if way.at_most is None:
            way.run()
    for number in range(runs):
        for way in ways if number % 2 == 0 else reversed(ways):
            if way.at_most is None or number < way.at_most:
                reading = way.run()
                yield way, reading if isinstance(reading, tuple) else (reading,)


def summary(taken: Taken, n: int) -> str:
    found = ((name, points) for name, points in taken.ways.items() if n in points.values)
    return "; ".join(f"{name} {shown(points.median(n), taken.panel.unit)}" for name, points in found)


def shown(value: float, unit: Unit) -> str:
    """A reading with its unit."""
    return f"{number(value, unit)} {unit}"


def number(value: float, unit: Unit) -> str:
    """A reading in its unit, with three figures that count."""
    scaled = value * SCALE.get(unit, 1.0)
    return f"{scaled:,.0f}" if abs(scaled) >= 100 else f"{scaled:.3g}"


def command(argv: Sequence[str], env: Mapping[str, str] | None = None) -> float:
    """Seconds that a command takes as a whole process. What it wrote to stderr is shown if it fails."""
    started = time.perf_counter()
    done = subprocess.run(argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        sys.stderr.write(done.stderr.decode(errors="replace")[-2000:])
        raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {' '.join(argv)[:300]}")
    return seconds


def processors() -> int:
    """The CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = Path(__file__).resolve().parent / "scripts"
