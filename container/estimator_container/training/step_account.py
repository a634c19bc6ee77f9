"""Where the time of a rank's steps goes: waiting for input, communicating, checkpointing, idle; the rest is computing.

It is kept from the end of the first step on, and brought to the rank's page now and then. What frameworks do outside
of Python is read then, too, from gauges. To see whether the rank is idle, one step in each tenth of a second is looked
at more closely: how much CPU the process used in it, which takes a system call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from time import monotonic_ns, process_time_ns

from .page import AT, AT_STEPS, CHECKPOINT, COMMUNICATION, IDLE, INPUT, KNOWN, LOOKED_AT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .page import Page

LOOK_NS = 100_000_000
"""Between two steps that are looked at closely; longer steps all are."""
KINDS = (INPUT, COMMUNICATION, CHECKPOINT)
_NOBODY = -1


class StepAccount:
    """Keeps account of the thread that makes the steps, and writes to the page of its rank."""

    def __init__(self, page: Page | list[int]) -> None:
        self.knows_idle = True
        """Whether a process that uses no CPU does nothing; with an accelerator it may well do something."""
        self._page = page
        self._thread = _NOBODY
        self._depth = 0
        self._kind = INPUT
        self._since = 0
        self._spent = dict.fromkeys(KINDS, 0)
        self._known = 0
        self._gauges: list[tuple[int, Callable[[], int]]] = []
        self._at_first = 0, 0, 0
        """What had been spent by the end of the first step, by `KINDS`."""
        # Of the step that is looked at closely, if one is.
        self._looked_since = 0
        self._spent_before = 0
        self._cpu = 0
        self._cpu_elsewhere = 0
        self._cpu_since = 0
        self._due = 0

    @property
    def has_begun(self) -> bool:
        """Whether the first step has ended."""
        return self._thread != _NOBODY

    @property
    def thread(self) -> int:
        """The one that makes the steps, once the first has ended."""
        return self._thread

    def is_this_thread(self) -> bool:
        """Whether the thread that calls may be the one that makes the steps."""
        return self._thread in (get_ident(), _NOBODY)

    @property
    def spends_on(self) -> int | None:
        """On which kind of thing that thread spends its time now; None if it computes."""
        return self._kind if self._depth else None

    def add_gauge(self, kind: int, read: Callable[[], int]) -> None:
        """Ask this now and then how many nanoseconds have been spent on something of the kind, since it was added."""
        self._known |= 1 << kind
        self._gauges.append((kind, read))

    def begin(self, kind: int) -> None:
        """The thread that calls begins to spend time on something; what begins within that is a part of it."""
        if self._thread not in (get_ident(), _NOBODY):
            return
        self._depth += 1
        if self._depth == 1:
            self._known |= 1 << kind
            self._kind = kind
            if self._looked_since:
                self._cpu_since = process_time_ns()
            self._since = monotonic_ns()

    def end(self) -> None:
        """What began last is over."""
        if not self._depth or self._thread not in (get_ident(), _NOBODY):
            return
        self._depth -= 1
        if self._depth == 0:
            self._spent[self._kind] += monotonic_ns() - self._since
            if self._looked_since and self._cpu_since:
                self._cpu_elsewhere += process_time_ns() - self._cpu_since
            self._cpu_since = 0

    def step_ended(self, steps: int, now: int) -> None:
        """That many steps have ended, the last one at that time."""
        if steps == 1:
            self._thread = get_ident()
            self._at_first = self._total()
            self._due = now
        if self._looked_since:
            self._look(steps, now)
        if now >= self._due:
            self._due = now + LOOK_NS
            self._looked_since = now
            self._spent_before = sum(self._total())
            self._cpu_elsewhere = self._cpu_since = 0
            self._cpu = process_time_ns()

    def stop(self) -> None:
        """Keep account no more: this is a child of the rank."""
        self._page = [0] * len(self._page)
        self._thread, self._due, self._looked_since = 0, sys.maxsize, 0
        self._gauges.clear()

    def _look(self, steps: int, now: int) -> None:
        """Write down all that is known at the end of a step that was looked at closely."""
        cpu = process_time_ns() - self._cpu - self._cpu_elsewhere
        total, page = self._total(), self._page
        rest = now - self._looked_since - (sum(total) - self._spent_before)
        self._looked_since = 0
        if rest > 0:
            page[LOOKED_AT] += rest
            page[IDLE] += max(0, rest - cpu)
        for kind, spent, before in zip(KINDS, total, self._at_first):
            page[kind] = spent - before
        page[KNOWN] = self._known | (1 << IDLE if self.knows_idle and not _uses_a_gpu() else 0)
        page[AT], page[AT_STEPS] = now, steps

    def _total(self) -> tuple[int, int, int]:
        spent = dict(self._spent)
        for kind, read in self._gauges:
            spent[kind] += read()
        return spent[INPUT], spent[COMMUNICATION], spent[CHECKPOINT]


def _uses_a_gpu() -> bool:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())
