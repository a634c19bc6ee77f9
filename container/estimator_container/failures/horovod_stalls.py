"""What Horovod's stall inspector says: which ranks have not submitted a tensor that the others wait for.

The rank that coordinates the others writes it to its stderr, and again for as long as it lasts, every
HOROVOD_STALL_CHECK_TIME_SECONDS; by HOROVOD_STALL_SHUTDOWN_TIME_SECONDS it ends the world. The words are those of
`horovod/common/stall_inspector.cc` of Horovod 0.28.1.
"""

from __future__ import annotations

import json
import re
import time
from typing import NamedTuple

from .verdict import names_of

_SUBMITTED = rb"One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks"
_MESSAGE = re.compile(
    rb"(?:\[[^\]\n]*\] )?" + _SUBMITTED + rb"[^\n]*? for more than (?P<seconds>\d+) seconds\.[^\n]*\n"
    rb"Missing ranks:(?P<missing>(?:\n\d+!?: \[[^\n]*\])+)"
    rb"(?P<ends>\nOne or more rank \(marked by \"!\"\)[^\n]*)?\n?"
)
_MISSING = re.compile(r"^(\d+)!?: \[(.*?)(?: \.\.\.)?\]$", re.MULTILINE)

END_SECONDS = 60.0
"""For which the stall that ends the world counts: Horovod says no more, and the end of a rank may be heard late."""


class Stall(NamedTuple):
    """Operations that wait for ranks."""

    seconds: int
    """That they have waited at least."""
    missing: dict[int, tuple[str, ...]]
    """Rank -> the names of tensors that it has not submitted, at most six."""
    ends_the_world: bool = False

    def sentence(self) -> str:
        """The stall in one sentence, for the log."""
        return f"Horovod has waited {self.for_whom()}"

    def for_whom(self) -> str:
        """How long Horovod has waited, and for whom.

        >>> Stall(60, {1: ("a",), 2: ("a",), 3: ("b", "c")}).for_whom()
        "more than 60 s for ranks 1 and 2 to submit 'a', and for rank 3 to submit 'b', 'c'"
        """
        waiting: dict[tuple[str, ...], list[int]] = {}
        for rank, names in sorted(self.missing.items()):
            waiting.setdefault(names, []).append(rank)
        whom = (f"for {names_of(ranks)} to submit {', '.join(map(repr, names))}" for names, ranks in waiting.items())
        return f"more than {self.seconds} s {', and '.join(whom)}"

    def to_json(self) -> str:
        """The stall as JSON, for the host's messages."""
        return json.dumps([self.seconds, list(self.missing.items()), self.ends_the_world])

    @classmethod
    def from_json(cls, text: str) -> Stall:
        """The way back from `to_json`."""
        seconds, missing, ends = json.loads(text)
        return cls(seconds, {rank: tuple(names) for rank, names in missing}, ends)


class Lasting:
    """The stall that there is now: Horovod tells of it again and again, so it is over when Horovod does not."""

    def __init__(self) -> None:
        self._told: Stall | None = None
        self._until = 0.0

    def tell(self, stall: Stall) -> None:
        """Take a stall that Horovod has just reported."""
        self._told = stall
        seconds = 2 * stall.seconds + 1
        self._until = time.monotonic() + (max(seconds, END_SECONDS) if stall.ends_the_world else seconds)

    @property
    def stall(self) -> Stall | None:
        """The stall, if Horovod has reported it recently enough; else None."""
        return self._told if time.monotonic() < self._until else None


def last_in(text: bytes) -> Stall | None:
    """The last stall that a rank's stderr tells of, if any."""
    found = list(_MESSAGE.finditer(text))
    if not found:
        return None
    missing = _MISSING.findall(found[-1]["missing"].decode("utf-8", "replace"))
    return Stall(
        int(found[-1]["seconds"]),
        {int(rank): tuple(names.split(", ")) for rank, names in missing},
        found[-1]["ends"] is not None,
    )


def left_without(text: bytes) -> bytes:
    """What a rank's stderr holds besides."""
    return _MESSAGE.sub(b"", text)
