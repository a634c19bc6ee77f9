"""What was killed on another host: one process, or the host with all that ran there.

A host that dies takes its ranks with it by SIGKILL, and may be heard to say so of a rank before its own end is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .kind import Kind
from .verdict import Verdict


class AskedHosts(Protocol):
    """The hosts that can be asked."""

    on_answer: Callable[[str], None]
    """Called with the host that has answered."""

    def ask_whether_there(self, host: str) -> None:
        """Have one say that it is there; one that is not is missed in time, as ever."""


class KilledOrLost:
    """Keeps what is said of a process that was killed until its host has answered, or is known to be lost."""

    def __init__(self, own: str, hosts: AskedHosts, report: Callable[[Verdict], None]) -> None:
        """`own` is this host, and `report` is called with a verdict whose host has answered."""
        self._own = own
        self._hosts = hosts
        self._report = report
        self._kept: Verdict | None = None
        hosts.on_answer = self._answered

    def keeps(self, found: Verdict) -> bool:
        """Whether it is not to be reported now: its host is asked, or another is, whose loss may be the cause."""
        if self._kept is not None:
            return found.kind is not Kind.HOST_LOST
        if not found.may_be_lost_host or found.host in (None, self._own):
            return False
        self._kept = found
        self._hosts.ask_whether_there(str(found.host))
        return True

    def forget(self) -> None:
        """Something else ends the attempt."""
        self._kept = None

    def _answered(self, host: str) -> None:
        kept = self._kept
        if kept is not None and kept.host == host:
            self.forget()
            self._report(kept)
