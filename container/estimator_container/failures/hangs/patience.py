"""How long the ranks of a job may be silent: learnt from how long they were."""

from __future__ import annotations

FACTOR = 5.0  # so many times the longest silence so far


class HangPatience:
    """The bound of a silence. Nothing is learnt before progress was seen twice, for a silence lies between two.

    >>> patience = HangPatience(floor=30.0, ceiling=1800.0)
    >>> patience.progress(now=0.0)
    >>> patience.learnt is None
    True
    >>> patience.progress(now=20.0)
    >>> patience.learnt
    100.0
    """

    def __init__(self, floor: float, ceiling: float) -> None:
        """The bound is at least `floor` and at most `ceiling`, in seconds."""
        self._floor = floor
        self._ceiling = ceiling
        self._last: float | None = None
        self._longest: float | None = None

    def progress(self, now: float) -> None:
        """A rank has written a line, or a checkpoint, at the time `now` in seconds."""
        if self._last is not None:
            self._longest = max(self._longest or 0.0, now - self._last)
        self._last = now

    @property
    def learnt(self) -> float | None:
        """The bound in seconds; None as long as nothing is known."""
        if self._longest is None:
            return None
        return min(max(FACTOR * self._longest, self._floor), self._ceiling)
