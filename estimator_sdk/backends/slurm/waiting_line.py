"""How many jobs of a cluster are to start before one that waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LOOK_AGAIN_SECONDS = 60.0
"""Between two looks at the jobs of all users, of which a cluster may have many thousands."""
_IN_LINE = frozenset(("None", "Priority", "Resources"))
"""Why jobs wait that need nothing but room; others may wait for ever, and hold up nobody."""


class Waiting(NamedTuple):
    """A job of anybody's that needs nothing but room."""

    number: int
    partitions: frozenset[str]
    priority: int


class Seen:
    """Those that waited when they were last looked at."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._ahead: dict[int, int] = {}

    def is_old(self, now: float) -> bool:
        """Whether it is time for another look."""
        return self._at is None or now - self._at >= LOOK_AGAIN_SECONDS

    def see(self, now: float, waiting: Iterable[Waiting]) -> None:
        """Keep who is ahead of whom."""
        self._at = now
        self._ahead = ahead(list(waiting))

    def ahead_of(self, number: int) -> int:
        """How many are ahead of a job."""
        return self._ahead.get(number, 0)


def parsed(line: str) -> Waiting | None:
    """A line of squeue as a job that waits in the line; None for any other.

    >>> parsed("12|PENDING|Priority|N/A|N/A|1000|gpu,debug|4294901756").priority
    4294901756
    >>> parsed("12|PENDING|JobHeldUser|N/A|N/A|1000|gpu|0") is None
    True
    """
    fields = line.split("|")
    if len(fields) != 8 or fields[1] != "PENDING" or fields[2] not in _IN_LINE or not fields[7].isdecimal():
        return None
    number = fields[0].partition("_")[0]  # an array that waits is one line
    if not number.isdecimal():
        return None
    return Waiting(int(number), frozenset(fields[6].split(",")), int(fields[7]))


def ahead(waiting: Iterable[Waiting]) -> dict[int, int]:
    """How many are ahead of each: in a partition of its own, of a higher priority or, of the same, submitted before.

    >>> gpu, cpu = frozenset({"gpu"}), frozenset({"cpu"})
    >>> ahead([Waiting(1, gpu, 5), Waiting(2, gpu, 9), Waiting(3, gpu, 5), Waiting(4, cpu, 1)])
    {2: 0, 1: 1, 3: 2, 4: 0}
    """
    found: dict[int, int] = {}
    before: dict[frozenset[str], int] = {}
    for job in sorted(waiting, key=lambda each: (-each.priority, each.number)):
        found[job.number] = sum(count for names, count in before.items() if names & job.partitions)
        before[job.partitions] = before.get(job.partitions, 0) + 1
    return found
