"""Counting the steps of a rank, and telling its own work from its waiting for others."""

from __future__ import annotations

from time import monotonic_ns

from .page import FIRST, LAST, NUMBER, OWN, OWN_STEPS, STEPS, WINDOW
from .step_account import StepAccount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from .page import Page
    from .window import Window


class StepClock:
    """Writes to the page of its rank."""

    def __init__(self, page: Page, begin_window: Callable[[int], Window] | None = None) -> None:
        """`begin_window` begins to record in detail what the rank does, when its host has asked for that."""
        self.account = StepAccount(page)
        """Where the time of these steps goes."""
        self._page: Page | list[int] = page
        self._begin_window = begin_window
        self._window: Window | None = None
        self._quiet = 0
        """The number on the page with which nothing is to be done: that of no window, and none at all during one."""
        self._steps = 0
        self._counter: object = None
        """What counts: the script, or one of several optimizers."""
        self._others: set[int] = set()
        """The optimizers that have made a step since the last one that counted."""
        self._works_since: int | None = None
        """None while the rank may wait for others."""
        self._own = 0
        """What it has worked since the last step."""
        self._has_waited = False
        """Whether it was seen to communicate since."""

    def count(self, counter: object) -> None:
        """An optimizer has made a step. Of several that alternate one counts, until another makes two in a row."""
        if counter is self._counter or self._counter is None or self._replaces(counter):
            self._counter = counter
            self._mark(None)

    def mark_explicitly(self, step: int | None) -> None:
        """The script says that a step has ended, and from now on nobody else does."""
        self._counter = self
        self._mark(step)

    def stop(self) -> None:
        """Write to the page no more, whoever counts."""
        self._page = [0] * len(self._page)
        self.account.stop()
        self._window, self._quiet = None, 0

    def work_ends(self) -> None:
        """From now on the rank may wait for others."""
        if self._works_since is not None:
            self._own += monotonic_ns() - self._works_since
            self._works_since = None
            self._has_waited = True

    def work_begins(self) -> None:
        """It waits no more."""
        self._works_since = monotonic_ns()

    def _replaces(self, counter: object) -> bool:
        """Whether it has made a step before since the one that counts has; a script that counts is not replaced."""
        if self._counter is not self and id(counter) in self._others:
            return True
        self._others.add(id(counter))
        return False

    def _mark(self, step: int | None) -> None:
        now, page = monotonic_ns(), self._page
        self._steps += 1
        page[NUMBER] = self._steps if step is None else step
        page[LAST] = now
        if self._steps == 1:
            page[FIRST] = now
        elif self._has_waited:
            if self._works_since is not None:
                self._own += now - self._works_since
            page[OWN] += self._own
            page[OWN_STEPS] += 1
        page[STEPS] = self._steps
        self._own, self._has_waited, self._works_since = 0, False, now
        if self._others:
            self._others.clear()
        self.account.step_ended(self._steps, now)
        if page[WINDOW] != self._quiet:
            self._look_at_window(page[WINDOW], page[NUMBER], now)

    def _look_at_window(self, asked: int, step: int, now: int) -> None:
        """A step has ended: a window begins or ends with it, or has one step more."""
        window = self._window
        if window is not None:
            window.step_ended(step, now)
            if window.number != asked:
                window.end()
                self._window = None
        if asked and self._window is None and self._begin_window is not None:
            self._window = self._begin_window(asked)
        self._quiet = 0 if self._window is None else -1
        self._works_since = monotonic_ns()  # what this took is no work of the next step
