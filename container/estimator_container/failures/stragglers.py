"""Ranks that are persistently slower than the others, by what each of them does itself in a step.

From outside all ranks of a synchronous training take equally long for a step. So a rank is judged by its own work
alone, and where nothing is known of that, by nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..contract.events import RankSlow
from ..training.page import StepCount
from .verdict import who_is

WINDOW_SECONDS = 5.0
WINDOW_STEPS = 3
"""A window is at least as long as both of these, on all ranks."""
WINDOWS = 3
"""In so many of them, one after the other, a rank is slow before it is named."""
FACTOR = 4 / 3
"""A step takes so many times as long because of a rank that is slow."""
_SECOND = 1e9  # in nanoseconds


class StepPace(NamedTuple):
    """How a rank went in one window, in seconds for a step."""

    whole: float
    own: float


class StragglerWatch:
    """Compares what all ranks of a world count, window by window."""

    def __init__(self, hosts: Mapping[int, str]) -> None:
        """`hosts` says where each rank is."""
        self._hosts = hosts
        self._newest: dict[int, StepCount] = {}
        self._began: dict[int, StepCount] = {}
        self._slow: dict[int, int] = {}
        """Rank -> in how many of the last windows, one after the other."""
        self._told: set[int] = set()

    def hear(self, counts: Iterable[StepCount]) -> list[RankSlow]:
        """Take the newest counts of some ranks; returns those ranks that turn out to be slow with them."""
        self._newest.update((each.rank, each) for each in counts if each.rank is not None and each.rank in self._hosts)
        if len(self._newest) < len(self._hosts):
            return []
        if not self._are_same_processes():
            self._began, self._slow = dict(self._newest), {}
            return []
        if not all(_is_window(self._began[rank], newest) for rank, newest in self._newest.items()):
            return []
        paces = {rank: _pace(self._began[rank], newest) for rank, newest in self._newest.items()}
        self._began = dict(self._newest)
        return self._judge({rank: pace for rank, pace in paces.items() if pace is not None})

    def _are_same_processes(self) -> bool:
        return self._began.keys() == self._newest.keys() and all(
            self._began[rank].pid == newest.pid for rank, newest in self._newest.items()
        )

    def _judge(self, paces: Mapping[int, StepPace]) -> list[RankSlow]:
        if len(paces) < len(self._hosts):  # a rank whose own work is not known may be the slow one
            self._slow = {}
            return []
        median = statistics.median_low(pace.own for pace in paces.values())
        factors = {rank: slowdown(pace, median) for rank, pace in paces.items()}
        self._slow = {rank: self._slow.get(rank, 0) + 1 for rank, factor in factors.items() if factor >= FACTOR}
        found = [rank for rank, windows in self._slow.items() if windows >= WINDOWS and rank not in self._told]
        self._told.update(found)
        return [
            RankSlow(self._hosts[rank], rank, round(factors[rank], 2), round(paces[rank].own, 4), round(median, 4))
            for rank in sorted(found)
        ]


def slowdown(pace: StepPace, median: float) -> float:
    """How many times as long a step takes as it would if the rank did its own part as fast as the median rank.

    What of a step is not the rank's own is not blamed on it, and stays as it is.

    >>> round(slowdown(StepPace(whole=0.4, own=0.4), 0.3), 2), round(slowdown(StepPace(whole=1.0, own=0.02), 0.01), 2)
    (1.33, 1.01)
    """
    excess = pace.own - median
    return pace.whole / max(pace.whole - excess, 0.01 * pace.whole)


def sentence(event: RankSlow) -> str:
    """Who is slow, and by how much."""
    own = f"its own part of a step takes {event.own:.3g} s, that of the median rank {event.median:.3g} s"
    return f"{who_is(event.host, event.rank)} is slow: {own}; every step takes {event.factor:.2g} times as long for it"


def _is_window(began: StepCount, newest: StepCount) -> bool:
    seconds = (newest.last - began.last) / _SECOND
    return seconds >= WINDOW_SECONDS and newest.steps - began.steps >= WINDOW_STEPS


def _pace(began: StepCount, newest: StepCount) -> StepPace | None:
    """None where the own work of a step is not known; a rank may be at the end of one while its page is read."""
    steps, own_steps = newest.steps - began.steps, newest.own_steps - began.own_steps
    if not own_steps or abs(own_steps - steps) > 1:
        return None
    return StepPace((newest.last - began.last) / steps / _SECOND, (newest.own - began.own) / own_steps / _SECOND)
