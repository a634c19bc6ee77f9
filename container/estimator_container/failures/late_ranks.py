"""Who is late: the ranks that still run a step while the others wait for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..contract.events import RanksLate
from .verdict import name_of

if TYPE_CHECKING:
    from ..logs.events import EventLog
    from ..runtime.loop import Loop, Timer

FIRST_SECONDS = 10.0  # after which the late ones are named; then after twice the time, and so on
LISTED = 8  # ranks, and hosts, in one sentence

Late = Callable[[], "list[tuple[str, int | None]]"]
"""Gives the host and the rank of all that still run; without a world the rank is None."""


class LateWatch:
    """Says who has not ended a step, from the moment that the first rank has."""

    def __init__(self, loop: Loop, events: EventLog) -> None:
        self._loop = loop
        self._events = events
        self._timer: Timer | None = None

    def begin(self, step: str, late: Late) -> None:
        """A rank has ended the step; only the first one of a step counts."""
        if self._timer is None:
            self._after(FIRST_SECONDS, step, late, FIRST_SECONDS)

    def end(self) -> None:
        """All have."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _after(self, seconds: float, step: str, late: Late, waited: float) -> None:
        self._timer = self._loop.after(seconds, lambda: self._say(step, late, waited))

    def _say(self, step: str, who: Late, waited: float) -> None:
        late = who()
        hosts = tuple(dict.fromkeys(host for host, _ in late))
        event = RanksLate(step, waited, tuple(rank for _, rank in late), hosts)
        self._events.tell(event, sentence(event))
        self._after(waited, step, who, 2 * waited)


def sentence(event: RanksLate) -> str:
    """Who is late, and how long the others have waited.

    >>> sentence(RanksLate("train", 10, [3], ["algo-2"]))
    "step 'train': rank 3 on algo-2 is still running, and the others have waited 10 s"
    >>> sentence(RanksLate("train", 20, [None, None], ["algo-1", "algo-2"]))
    "step 'train': algo-1, algo-2 are still running, and the others have waited 20 s"
    """
    hosts = _first(event.hosts)
    ranks = [rank for rank in event.ranks if rank is not None]
    who = f"rank{'s' if len(ranks) > 1 else ''} {_first(list(map(name_of, ranks)))} on {hosts}" if ranks else hosts
    verb = "is" if len(event.ranks) == 1 else "are"
    return f"step {event.step!r}: {who} {verb} still running, and the others have waited {event.seconds:g} s"


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
