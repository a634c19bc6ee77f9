"""The end of what one rank, or one host's script or toolkit, has written."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from estimator_container.failures.verdict import names_of

LAST_LINES = 100
"""Lines kept of each log."""
WIDTH = 400
"""Characters kept of each line."""

Source = Literal["rank", "script", "toolkit"]
"""Who writes a log: a rank of a world, a host's script without one, a host's toolkit."""
SOURCES: tuple[Source, ...] = ("rank", "script", "toolkit")

_MOST_KINDS = 32
_ANY_KIND = frozenset({"any"})
_KIND_WIDTH = 80
_NO_WORD = re.compile(r"(?:\d\w*|[\W_])+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(eq=False)
class Log:
    """The end of one log, and of what kinds its lines are."""

    source: Source
    host: str
    rank: int | None = None
    count: int = 0
    """All its lines."""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    unfinished: dict[str, str] = field(default_factory=dict)
    """By stream, the line that has no end yet, as it is now."""
    _kinds: set[str] = field(default_factory=set)
    _looked_at: int = 0

    @property
    def name(self) -> str:
        """Such as `rank 0`, `rank 0 of world 2`, `algo-1` or `algo-1 toolkit`."""
        if self.rank is not None:
            return names_of([self.rank])
        return f"{self.host} toolkit" if self.source == "toolkit" else self.host

    @property
    def order(self) -> tuple[int, int, str]:
        """Ranks by their numbers, then hosts, `algo-10` behind `algo-9`."""
        if self.rank is not None:
            return SOURCES.index(self.source), self.rank, ""
        return SOURCES.index(self.source), len(self.host), self.host

    def add(self, stream: str, data: bytes) -> None:
        """Take a whole line."""
        self.count += 1
        self.lines.append(shown(data))
        self.unfinished.pop(stream, None)

    def newest(self) -> list[str]:
        """Its last lines, and behind them those that have no end yet."""
        return [*self.lines, *self.unfinished.values()]

    def kinds(self) -> frozenset[str]:
        """The words of its lines without their numbers, of each kind of line once.

        Two logs with the same kinds of lines are of ranks that do the same. One with very many kinds is like any other
        such.
        """
        new = min(self.count - self._looked_at, len(self.lines))
        self._looked_at = self.count
        for line in islice(reversed(self.lines), new):
            if len(self._kinds) < _MOST_KINDS:
                self._kinds.add(_NO_WORD.sub(" ", line).strip()[:_KIND_WIDTH])
        return frozenset(self._kinds) if len(self._kinds) < _MOST_KINDS else _ANY_KIND


def shown(data: bytes) -> str:
    """A line as text: what a terminal would be left with, cut, and with nothing that a screen would act on."""
    newest = data.rstrip(b"\r\n").rpartition(b"\r")[2]
    # A character has at most four bytes: what is cut off here would be below, and bytes that are no text are slow.
    text = newest[: 4 * WIDTH + 4].decode("utf-8", "backslashreplace")
    if len(text) > WIDTH:
        text = f"{text[:WIDTH]}…"
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
