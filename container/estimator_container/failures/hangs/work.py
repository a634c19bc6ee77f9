"""Which ranks work in a silence, as far as their use of CPU tells.

A rank that waits in MPI burns its CPU as one that works does, so where it stands decides what its CPU means.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from . import waiting
from .evidence import Use
from .standing import AT_ITS_END
from .waiting import Stacks

BUSY_SHARE = 0.05  # of a CPU: what a rank or its children may take and still be idle
WAKING = 2.0  # times in a second that an idle thread may wake up
DUMP_PAUSES = 4  # times that a thread waits because it is asked where it stands: more than one where the disk is busy


class Work:
    """What the ranks of a host do while they are silent, from one measurement to the next."""

    def __init__(self, code: str, now: Callable[[], float]) -> None:
        """`code` is the folder of the scripts, and `now` says the time in seconds."""
        self._code = code
        self._now = now
        self.forget()

    def forget(self) -> None:
        """Another silence begins."""
        self.shares: dict[int, float] = {}
        """How much of a CPU a rank took last."""
        self._worked: dict[int, float] = {}
        """When a rank was last seen at work."""
        self._uses: Mapping[int, Use] = {}
        self._since = 0.0

    def begin(self, uses: Mapping[int, Use]) -> None:
        """Measure from here."""
        self._uses = uses
        self._since = self._now()

    def measure(self, uses: Mapping[int, Use], stacks: Mapping[int, Stacks]) -> None:
        """Find out who has used CPU since, and measure from here."""
        seconds = self._now() - self._since
        for rank, use in uses.items():
            before = self._uses[rank]
            self.shares[rank] = (use.cpu - before.cpu) / seconds
            if self._works(stacks[rank], before, use, seconds):
                self._worked[rank] = self._now()
        self.begin(uses)

    @property
    def ranks(self) -> Collection[int]:
        """Those that were at work at any time of this silence."""
        return self._worked.keys()

    def may_work(self, rank: int, seconds: float) -> bool:
        """Whether a rank was at work within the last so many seconds: who was not stands still."""
        return rank in self._worked and self._now() - self._worked[rank] < seconds

    def _works(self, stacks: Stacks, before: Use, now: Use, seconds: float) -> bool:
        """Whether a rank has used CPU, or woken up often, outside of a call in which it waits for others."""
        if stacks.text == AT_ITS_END:
            return False
        call = waiting.call_in(stacks.first, self._code)
        of_first = now.cpu_of_first - before.cpu_of_first
        of_others = now.cpu - before.cpu - of_first
        waits_in_library = call is not None and call.in_library and not stacks.others
        counted = (0.0 if call else of_first) + (0.0 if waits_in_library else of_others)
        wakes = call is None and now.pauses_of_first - before.pauses_of_first > WAKING * seconds + DUMP_PAUSES
        return counted > BUSY_SHARE * seconds or wakes
