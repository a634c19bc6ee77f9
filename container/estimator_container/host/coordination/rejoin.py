"""Another first host: what the other hosts do when theirs is lost, where the platform may make it anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...failures.outcome import Outcome

if TYPE_CHECKING:
    from ...failures.verdict import Verdict
    from .platform_line import PlatformLine
    from .port import HostPort


class Rejoin:
    """Ends the attempt on this host, and has it wait until the platform says where the new first host is."""

    def __init__(self, host: HostPort, line: PlatformLine, on_again: Callable[[str], None]) -> None:
        """`on_again` is called with its address, before the host begins again."""
        self._host = host
        self._on_again = on_again
        self._lost: Verdict | None = None
        self._line = line
        line.expect(self._begin_again, self._give_up)

    @property
    def waits(self) -> bool:
        """Whether the first host is lost, and no other there yet."""
        return self._lost is not None

    def begin(self, lost: Verdict) -> None:
        """End the attempt here, because of what became of the first host."""
        self._lost = lost
        self._host.end_attempt(lost)

    def cleared(self) -> None:
        """Nothing of the attempt is left here: this host is ready for another first one."""
        if self._lost is not None and self._lost.host is not None:
            self._line.ask(self._lost, "", [self._lost.host])

    def _begin_again(self, address: str, so_far: int | None) -> None:
        if self._lost is None or self._host.outcome is not None:
            return
        self._lost = None
        self._on_again(address)
        self._host.begin_again(so_far)

    def _give_up(self) -> None:
        if self._lost is not None:
            self._host.end(Outcome("failed", self._lost))
