"""Connections whose other end has not proved who it is: few at a time, and none for long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..runtime.links import Link
    from ..runtime.loop import Loop

SECONDS = 2.0  # that a stranger has to prove who it is
LIMIT = 128  # strangers at a time, besides the hosts that are awaited


class UnprovenConnections:
    """Takes everybody in, and turns the one who has waited longest away when there are too many.

    So whoever holds connections open, or opens many, keeps no host out: a host proves itself in a few messages, and
    one that is turned away in a crowd comes again.
    """

    def __init__(self, loop: Loop, limit: int) -> None:
        self._loop = loop
        self._limit = limit
        self._due: dict[Link, float] = {}
        self._timed = False

    def __len__(self) -> int:
        return len(self._due)

    def meet(self, link: Link) -> None:
        """Give a new connection its time to prove itself; if there are too many, the oldest is closed."""
        if len(self._due) >= self._limit:
            self.dismiss(next(iter(self._due)))
        self._due[link] = time.monotonic() + SECONDS
        self._watch()

    def know(self, link: Link) -> None:
        """It has proved itself, or has gone."""
        self._due.pop(link, None)

    def dismiss(self, link: Link) -> None:
        """Close a connection that has not proved itself."""
        self.know(link)
        link.close()

    def close(self) -> None:
        """Close all connections that have not proved themselves."""
        for link in list(self._due):
            self.dismiss(link)

    def _watch(self) -> None:
        """One timer, for the first that is due, and not one for each of a crowd."""
        if self._due and not self._timed:
            self._timed = True
            self._loop.after(next(iter(self._due.values())) - time.monotonic(), self._dismiss_the_late)

    def _dismiss_the_late(self) -> None:
        self._timed = False
        now = time.monotonic()
        for link in [link for link, due in self._due.items() if due <= now]:
            self.dismiss(link)
        self._watch()
