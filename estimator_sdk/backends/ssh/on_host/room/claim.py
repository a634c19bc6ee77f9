"""A keeper's part in the claim of a job: it has the lease on its machine, and says how that stands."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

from estimator_container.runtime import machine
from estimator_container.runtime.loop import Loop, Timer

from .. import words
from .leases import Lease, Ticket

LOOK_SECONDS = 2.0
"""Between two looks at the leases of others by a job that waits: nobody tells of one that was killed."""


class Leaseholder:
    """The claim on this machine. See `words.CLAIM` and those after it for what is said."""

    def __init__(self, loop: Loop, send: Callable[..., None]) -> None:
        self._loop = loop
        self._send = send
        self._lease: Lease | None = None
        self._terms: dict[str, Any] = {}
        self._is_limited = False
        self._timer: Timer | None = None
        self._told = ""

    def hear(self, kind: str, fields: list[str]) -> None:
        """What the supervisor says."""
        try:
            if kind == words.CLAIM:
                self._begin(json.loads(fields[0]))
            elif self._lease is not None and kind == words.TAKE:
                before = self._lease.take()
                self._tell(words.FULL if before else words.HELD, before)
            elif self._lease is not None and kind == words.GIVE_BACK:
                self._lease.give_back()
                self._look()
                self._look_again()
        except OSError as error:
            self._failed(error)

    def close(self) -> None:
        """Give the lease back."""
        if self._timer is not None:
            self._timer.cancel()
        if self._lease is not None:
            if self._lease.fileno() >= 0:
                self._loop.forget(self._lease.fileno())
            self._lease.close()
            self._lease = None

    def _begin(self, terms: dict[str, Any]) -> None:
        self.close()
        self._terms, self._is_limited = terms, terms["limit"] != 0
        self._make()
        self._look_again()

    def _make(self) -> None:
        terms = self._terms
        limit = _own_slots() if terms["limit"] is None else terms["limit"]
        self._lease = Lease(terms["job"], Ticket(*terms["ticket"]), terms["slots"], limit)
        if self._lease.fileno() >= 0:
            self._loop.on_readable(self._lease.fileno(), self._look)
        self._look()

    def _look_again(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.after(LOOK_SECONDS, self._look_later)

    def _look_later(self) -> None:
        try:
            if self._lease is None:
                self._make()
            else:
                self._look()
        except OSError as error:
            self._failed(error)
        else:
            if self._lease is None or not self._lease.is_held:
                self._look_again()

    def _failed(self, error: OSError) -> None:
        """Make the lease anew later; who is held to nothing runs without one, as on a machine with a full disk."""
        self.close()
        if self._is_limited:
            self._look_again()
        self._tell(words.FULL if self._is_limited else words.HELD, str(error))

    def _look(self) -> None:
        if self._lease is None:
            return
        self._lease.clear()
        if self._lease.is_held:
            return
        with contextlib.suppress(OSError):  # the next look tells
            before = self._lease.who_is_before()
            self._tell(words.FULL if before else words.FREE, before)

    def _tell(self, state: str, before: str) -> None:
        """Say only what is new."""
        if f"{state} {before}" != self._told or state == words.HELD:
            self._told = f"{state} {before}"
            self._send(words.ROOM, state, before)


def _own_slots() -> int:
    """Where nobody says how many a machine has."""
    return machine.gpus() or machine.cpus()
