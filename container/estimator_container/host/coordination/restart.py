"""Another attempt on the same hosts: the first host ends the one that failed on all of them, and asks what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...failures.kind import Kind
from ...failures.outcome import Outcome
from ...failures.verdict import of_lost_host

if TYPE_CHECKING:
    from ...failures.verdict import Verdict
    from ...runtime.loop import Timer
    from .others import Others
    from .platform_line import PlatformLine
    from .port import HostPort

CLEAR_SECONDS = 30.0  # that a host may take to end what is left of an attempt's ranks


class Restart:
    """What the first host does about an attempt that failed, where the platform may have another one follow."""

    def __init__(
        self,
        host: HostPort,
        line: PlatformLine,
        others: Others,
        on_again: Callable[[], None],
        on_end: Callable[[Outcome], None],
    ) -> None:
        """`on_again` is called when another attempt begins, and `on_end` with the job's outcome when none does."""
        self.failed: Verdict | None = None
        """Why the attempt failed that is being ended, or has been; None while one runs."""
        self._host = host
        self._others = others
        self._on_again = on_again
        self._on_end = on_end
        self._lost: set[str] = set()
        """The hosts that are gone, and have to be replaced."""
        self._uncleared: set[str] = set()
        """The hosts on which something of its ranks may be left."""
        self._late: Timer | None = None
        self._line = line
        line.expect(self._begin_again, self.give_up)

    def is_possible_after(self, found: Verdict) -> bool:
        """Whether every host is in order then, or this one can do without it until another is there."""
        return found.kind.leaves_hosts or (found.kind is Kind.HOST_LOST and found.host in self._host.spec.hosts[1:])

    def begin(self, found: Verdict) -> None:
        """End the attempt on every host that is there, because of `found`."""
        self.failed = found
        self._lost = set(self._others.apart)  # though one of them alone is to blame
        if found.kind is Kind.HOST_LOST and found.host is not None:
            self._lost.add(found.host)
        self._uncleared = set(self._host.spec.hosts) - self._lost
        self._late = self._host.toolkit.loop.after(CLEAR_SECONDS, self.give_up)
        self._others.tell("clear", found.to_json())
        self._host.end_attempt(found)

    def cleared(self, host: str) -> None:
        """Nothing of the attempt is left on that host; once that is so on all of them, the platform decides."""
        self._uncleared.discard(host)
        self._ask()

    def lost(self, host: str) -> None:
        """Another host is gone meanwhile; the platform may have to be told again with which hosts it could go on."""
        if self.failed is not None and self.failed.may_be_lost_host and (host == self.failed.host in self._uncleared):
            self.failed = of_lost_host(host, self._host.spec.name)  # which has killed that process with all others
        self._lost.add(host)
        self._uncleared.discard(host)
        self._ask()

    def give_up(self) -> None:
        """No other attempt follows."""
        if self.failed is not None:
            self._on_end(Outcome("failed", self.failed))

    def close(self) -> None:
        """Wait for nothing more."""
        self._forget_time()

    def _ask(self) -> None:
        if self._uncleared or self.failed is None:
            return
        self._forget_time()
        self._line.ask(self.failed, self._others.expect(self._lost) if self._lost else "", sorted(self._lost))

    def _begin_again(self, address: str, so_far: int | None) -> None:
        if self.failed is None or self._host.outcome is not None:
            return
        self.failed = None
        self._on_again()
        self._host.begin_again(so_far)
        self._others.tell("again", str(self._host.restarts.so_far))
        self._others.begin_again()

    def _forget_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
