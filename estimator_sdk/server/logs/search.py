"""Search a log from its end to its begin, in steps that each end soon."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ...errors import InvalidArgument
from . import pieces
from .pieces import LocatedLine
from .selection import LogFile, Place, Places, Selection

MOST_FOUND = 200
"""Lines of one answer."""
MOST_WORDS = 200
"""Characters that can be searched for."""
_PIECE = 1 << 19  # bytes that are searched at a time
_SECONDS = 0.2  # after which an answer says how far it came
_OVERLAP = 1 << 15  # bytes of a line that begins in an earlier piece


@dataclass(frozen=True)
class Found:
    """Lines that have the words, the newest of each host first."""

    lines: list[tuple[LogFile, LocatedLine]]
    to: Places
    """Up to where each log was searched; nothing where all of it was."""
    searched: int
    """Bytes."""

    @property
    def is_over(self) -> bool:
        """Whether all was searched."""
        return not self.to


def search(selection: Selection, words: str, before: Places | None) -> Found:
    """The lines that have these words, upper or lower case, before a place or the end.

    It takes about 0.2 s at most: `to` is where another call goes on. Raises InvalidArgument for words that no line has.
    """
    if not words or len(words) > MOST_WORDS or "\n" in words:
        raise InvalidArgument("text", f"text must be 1 to {MOST_WORDS} characters of one line")
    needle = _folded(words.encode("utf-8", "surrogateescape"))
    deadline = time.monotonic() + _SECONDS
    found: list[tuple[LogFile, LocatedLine]] = []
    searched = 0
    left: dict[int, Place] = {}
    for file in selection.files:
        whole = Place(pieces.size_of(file.path), 0)
        place = whole if before is None else before.get(file.number)
        if place is None:
            continue
        if place.offset > whole.offset:  # it is another log by now
            place = whole
        found += ((file, each) for each in _having(pieces.lines_up_to(file, place, selection), needle))
        stop = Place(place.offset, 0)
        for start, end in pieces.pieces_back(file, place.offset, _PIECE):
            if len(found) >= MOST_FOUND or time.monotonic() > deadline:
                break
            lines = pieces.lines_of(file, start, end, selection).lines if _may_have(file, start, end, needle) else []
            having, room = _having(lines, needle), MOST_FOUND - len(found)
            found += ((file, each) for each in having[:room])
            searched += end - start
            stop = Place(start, 0) if len(having) <= room else _in_front(having[room - 1].place)
        if any(stop):
            left[file.number] = stop
    return Found(found, left, searched)


def _having(lines: list[LocatedLine], needle: bytes) -> list[LocatedLine]:
    """Those that have the words, the last one first."""
    return [each for each in reversed(lines) if needle in _folded(each.line.data)]


def _in_front(place: Place) -> Place:
    return Place(place.offset, place.lines - 1)


def _folded(data: bytes) -> bytes:
    """Letters of ASCII in lower case; all else as it is."""
    return data.lower()


def _may_have(file: LogFile, start: int, end: int, needle: bytes) -> bool:
    """Whether the words can be in lines that end in a piece: as they are, or torn by the begin of a frame."""
    data = _folded(pieces.read(file.path, max(0, start - _OVERLAP), end))
    return needle in data or pieces.has_torn_line(data)
