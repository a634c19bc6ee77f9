"""What ended a rank: a failure of its own, the loss of its host, or a scheduler that stops the job.

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
    """Holds back a verdict on a rank until it is known which of these it was."""

    def __init__(
        self, own: str, hosts: AskedHosts, report: Callable[[Verdict], None], loop: Loop, has_scheduler: bool
    ) -> None:
        """`own` is this host; `report` is called with a verdict once it is known to be on the rank alone."""
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
            self._loop.after(SCHEDULER_SECONDS, lambda: self._report_kept(found))
            return True
        if not found.may_be_lost_host or found.host in (None, self._own):
            return False
        self._kept = found
        self._hosts.ask_whether_there(str(found.host))
        return True

    @property
    def is_keeping(self) -> bool:
        """Whether a verdict is held back."""
        return self._kept is not None

    def forget(self) -> None:
        """Something else ends the attempt."""
        self._kept = None

    def _answered(self, host: str) -> None:
        kept = self._kept
        if kept is not None and kept.host == host and kept.may_be_lost_host:
            self._report_kept(kept)

    def _report_kept(self, found: Verdict) -> None:
        if found is self._kept:
            self.forget()
            self._report(found)
