"""Time in which this process could run.

A scheduler that suspends a job stops its toolkit with its ranks, and the clock of the machine goes on. No clock of
Linux leaves that out, so it is known by a timer that comes much too late.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...runtime.loop import Loop

FROZEN_SECONDS = 10.0
"""By which no busy machine holds a timer up."""
TICK_SECONDS = 1.0


class AwakeTime:
    """Seconds since some moment, of which those do not count in which this process stood still."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._frozen = 0.0
        self._due = time.monotonic() + TICK_SECONDS
        self._timer = loop.after(TICK_SECONDS, self._tick)

    def __call__(self) -> float:
        """Now; the first to ask after a standstill may do so before the timer comes."""
        now = time.monotonic()
        return now - self._frozen - self._late(now)

    def close(self) -> None:
        """Count no more."""
        self._timer.cancel()

    def _late(self, now: float) -> float:
        late = now - self._due
        return late if late >= FROZEN_SECONDS else 0.0

    def _tick(self) -> None:
        now = time.monotonic()
        self._frozen += self._late(now)
        self._due = now + TICK_SECONDS
        self._timer = self._loop.after(TICK_SECONDS, self._tick)
