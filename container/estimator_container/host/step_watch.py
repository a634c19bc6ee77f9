"""What the ranks of this host count on their pages: looked at now and then, and told sparsely."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..contract.events import StepTimes, TrainingSteps
from ..training.page import StepCount, StepTime, read_pages, read_times

if TYPE_CHECKING:
    from ..logs.events import EventLog
    from ..runtime.loop import Loop, Timer
    from .windows import Windows

LOOK_SECONDS = 1.0
TELL_SECONDS = 5.0
"""Between two tellings, but for the first and the last step of a rank."""
OFTEN = 30
"""How many times it is told at every look where the time of steps goes: that of a short job is to be known, too."""


class StepWatch:
    """The training steps of one attempt's ranks of this host."""

    def __init__(
        self,
        loop: Loop,
        events: EventLog,
        folder: str,
        began: int,
        on_news: Callable[[Sequence[StepCount]], None],
        windows: Windows | None = None,
    ) -> None:
        """`folder` is that of the pages; what was counted before `began` is of an earlier attempt.

        `on_news` is called with what has been counted, whenever that is looked at; so are the `windows` looked after.
        """
        self._windows = windows
        self._loop = loop
        self._events = events
        self._folder = folder
        self._on_news = on_news
        self._began = began
        self._told: dict[int | None, StepCount] = {}
        self._told_at = 0.0
        self._times: dict[int | None, StepTime] = {}
        self._times_told = 0
        self._look()

    def rank_ended(self, rank: int | None) -> None:
        """Tell what it has counted to its end."""
        self._tell([each for each in self._news() if each.rank == rank])
        self._tell_times([each for each in self._news_of_times() if each.rank == rank])

    def close(self) -> None:
        """Look no more, once the last is told: these ranks have ended."""
        self._timer.cancel()
        if self._windows is not None:
            self._windows.close()
        self._tell(self._news())
        self._tell_times(self._news_of_times())

    def _look(self) -> None:
        self._timer: Timer = self._loop.after(LOOK_SECONDS, self._look)
        if self._windows is not None:
            self._windows.look()
        news = self._news()
        if news:
            self._on_news(news)
        if any(self._is_new(each) for each in news) or time.monotonic() - self._told_at >= TELL_SECONDS:
            self._told_at = time.monotonic()
            self._tell(news)
            self._tell_times(self._news_of_times())
        elif news and self._times_told < OFTEN:
            self._tell_times(self._news_of_times())

    def _news(self) -> list[StepCount]:
        """The pages of this attempt on which something has happened since it was told."""
        found = (each for each in read_pages(self._folder) if each.first >= self._began)
        return [each for each in found if each != self._told.get(each.rank)]

    def _news_of_times(self) -> list[StepTime]:
        """Where time went on the pages of processes whose steps have been told."""
        pids = {count.rank: count.pid for count in self._told.values()}
        found = (each for each in read_times(self._folder) if pids.get(each.rank) == each.pid)
        return [each for each in found if each != self._times.get(each.rank)]

    def _is_new(self, count: StepCount) -> bool:
        told = self._told.get(count.rank)
        return told is None or told.pid != count.pid

    def _tell(self, news: Sequence[StepCount]) -> None:
        if not news:
            return
        self._told.update((each.rank, each) for each in news)
        since = time.time_ns() - time.monotonic_ns()
        self._events.emit(
            TrainingSteps(
                [each.rank for each in news],
                [each.steps for each in news],
                [each.number for each in news],
                [_seconds(since + each.first) for each in news],
                [_seconds(since + each.last) for each in news],
            )
        )

    def _tell_times(self, news: Sequence[StepTime]) -> None:
        if not news:
            return
        self._times.update((each.rank, each) for each in news)
        self._times_told += 1
        self._events.emit(
            StepTimes(
                [each.rank for each in news],
                [each.pid for each in news],
                [each.steps for each in news],
                [_seconds(each.time) for each in news],
                [_known(each.input) for each in news],
                [_known(each.communication) for each in news],
                [_known(each.checkpoint) for each in news],
                [_known(each.idle) for each in news],
            )
        )


def _seconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1e9, 4)


def _known(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else _seconds(nanoseconds)
