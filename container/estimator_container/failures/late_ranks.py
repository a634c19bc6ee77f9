"""Who is late: the ranks that still run a step while the others wait for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .verdict import names_of

if TYPE_CHECKING:
    from ..logs.events import EventLog
    from ..runtime.loop import Loop, Timer

FIRST_SECONDS = 10.0  # after which the late ones are named; then after twice the time, and so on
LISTED = 8  # ranks in one sentence

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
        verb = "is" if len(late) == 1 else "are"
        text = f"step {step!r}: {_named(late)} {verb} still running, and the others have waited {waited:g} s"
        self._events.emit(
            "ranks_late",
            step=step,
            seconds=waited,
            ranks=[rank for _, rank in late],
            hosts=list(dict.fromkeys(host for host, _ in late)),
        )
        self._events.say(text)
        self._after(waited, step, who, 2 * waited)


def _named(late: list[tuple[str, int | None]]) -> str:
    """
    >>> _named([("algo-2", 3)]), _named([("algo-1", None), ("algo-2", None)])
    ('rank 3 on algo-2', 'algo-1, algo-2')
    """
    named = [host if rank is None else f"{names_of([rank])} on {host}" for host, rank in late]
    more = f" and {len(named) - LISTED} more" if len(named) > LISTED else ""
    return ", ".join(named[:LISTED]) + more
