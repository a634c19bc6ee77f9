"""What ended a rank: something of its own, or what ends more than that.

A host that dies takes its ranks with it by SIGKILL, and may be heard to say so of a rank before its own end is seen.
A scheduler that stops a job sends SIGTERM to each of its processes, and to a rank before the host's toolkit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..runtime.loop import Loop
from .kind import Kind
from .outcome import SCHEDULER_SECONDS
from .verdict import Verdict


class AskedHosts(Protocol):
    """The hosts that can be asked."""

    on_answer: Callable[[str], None]
    """Called with the host that has answered."""

    def ask_whether_there(self, host: str) -> None:
        """Have one say that it is there; one that is not is missed in time, as ever."""


class KilledOrLost:
    """Keeps what is said of a process that was killed until it is known whether more has ended than that."""

    def __init__(
        self, own: str, hosts: AskedHosts, report: Callable[[Verdict], None], loop: Loop, has_scheduler: bool
    ) -> None:
        """`own` is this host; `report` is called with a verdict that is of the process alone."""
        self._own = own
        self._hosts = hosts
        self._report = report
        self._loop = loop
        self._has_scheduler = has_scheduler
        self._kept: Verdict | None = None
        hosts.on_answer = self._answered

    def keeps(self, found: Verdict) -> bool:
        """Whether it is not to be reported now: it may have been the scheduler, or the loss of a host that is asked."""
        if self._kept is not None:
            return found.kind is not Kind.HOST_LOST
        if self._has_scheduler and found.may_be_a_stop:
            self._kept = found
            self._loop.after(SCHEDULER_SECONDS, lambda: self._is_of_process(found))
            return True
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
        if kept is not None and kept.host == host and kept.may_be_lost_host:
            self._is_of_process(kept)

    def _is_of_process(self, found: Verdict) -> None:
        if found is self._kept:
            self.forget()
            self._report(found)
