"""The chosen lines of a log from the first to the last byte, in pieces, so that no reader fills the memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from . import pieces
from .pieces import LocatedLine
from .selection import LogFile, Selection

PIECE = 1 << 16
"""Bytes that are given to a client at a time."""
_READ = 1 << 17  # bytes that are read of one host's log at a time


def text_of(selection: Selection) -> Iterator[bytes]:
    """All chosen lines in pieces of about `PIECE`: those of one rank and stream as it wrote them, others tagged.

    It ends with what is written as it reaches the end of each log.
    """
    is_bare = len(selection.files) == 1 and None not in (selection.rank, selection.stream)
    every = heapq.merge(*(_lines(file, selection) for file in selection.files), key=lambda each: each.line.time_ns)
    pending = bytearray()
    for each in every:
        pending += each.line.data if is_bare else each.line.tagged()
        while len(pending) >= PIECE:
            yield bytes(pending[:PIECE])
            del pending[:PIECE]
    if pending:
        yield bytes(pending)


def _lines(file: LogFile, selection: Selection) -> Iterator[LocatedLine]:
    """The lines of one log; a line is held until its end has come, as far as `LineAssembler` holds it."""
    reader = pieces.Continuous(file, selection)
    size, at = pieces.size_of(file.path), 0
    while at < size:
        end = size if size - at <= _READ else pieces.boundary(file.path, at + _READ)
        yield from reader.lines(at, end)
        at = end
    yield from reader.rest(size)
