"""A page of a log: so many lines before or behind a place, merged by time over the hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from estimator_container.logs.lines import Line

from . import pieces
from .pieces import LocatedLine
from .selection import LogFile, Place, Places, Selection

MOST_LINES = 1000
"""Lines of one page."""
_LEAST_PIECE, _PIECE = 1 << 15, 1 << 18  # bytes that are read of one log at a time
_BUDGET = 1 << 25  # bytes that one page may read, so that an answer always comes soon
_START = Place(0, 0)


@dataclass(frozen=True)
class LogPage:
    """Lines in the order of their times."""

    lines: list[LocatedLine]
    before: Places
    """In front of the first line."""
    after: Places
    """Behind the last one."""
    is_start: bool
    """Whether nothing is before these lines."""
    is_end: bool
    """Whether nothing was behind them when they were read."""
    open: list[Line]
    """How lines go on that have no end yet; only at the end."""


class _OfLog(NamedTuple):
    """What was read of one log."""

    file: LogFile
    lines: list[LocatedLine]
    reached: Place
    """How far it was read."""
    is_all: bool
    """Whether that is its start, or its end."""
    open: list[Line]
    end: Place
    """Behind all, where it was read backward."""


def backward(selection: Selection, before: Places | None, limit: int) -> LogPage:
    """The last lines before a place, or of all; fewer than `limit`, though not at the start, where they are rare."""
    read = [
        _back(file, selection, None if before is None else before.get(file.number, _START), limit)
        for file in selection.files
    ]
    # What one log was not read for is older than what is shown of it: so nothing older of another is shown.
    floor = max((each.lines[0].line.time_ns for each in read if not each.is_all and each.lines), default=0)
    merged = [(each.file.number, line) for each in read for line in each.lines if line.line.time_ns >= floor]
    merged = sorted(merged, key=_time)[-limit:]
    first: dict[int, LocatedLine] = {}
    for number, line in merged:
        first.setdefault(number, line)
    starts = {each.file.number: _in_front(each, first.get(each.file.number)) for each in read}
    ends = {each.file.number: each.end for each in read}
    opened = [line for each in read for line in each.open] if before is None else []
    return LogPage(
        [line for _, line in merged], starts, ends, not any(map(any, starts.values())), before is None, opened
    )


def _back(file: LogFile, selection: Selection, place: Place | None, limit: int) -> _OfLog:
    """The last lines of one log before a place, or before its end."""
    size = pieces.size_of(file.path)
    found: list[LocatedLine] = []
    begin = size if place is None else min(place.offset, size)
    end, opened = Place(begin, 0), list[Line]()
    if place is not None and place.lines:  # the frame in which that line ends is read too, up to it
        end, found = place, pieces.lines_up_to(file, place, selection)
    length = max(_LEAST_PIECE, _PIECE // len(selection.files))
    for start, stop in pieces.pieces_back(file, begin, length):
        if len(found) >= limit or begin - stop > _BUDGET // len(selection.files):
            return _OfLog(file, found[-limit:], Place(stop, 0), False, opened, end)
        piece = pieces.lines_of(file, start, stop, selection)
        if place is None and stop == size:
            end, opened = Place(piece.end, 0), piece.open
        found = piece.lines + found
    return _OfLog(file, found[-limit:], _START, len(found) <= limit, opened, end)


def _in_front(read: _OfLog, first: LocatedLine | None) -> Place:
    """In front of the first line that is shown of a log."""
    if first is None:
        return read.lines[-1].place if read.lines else read.reached
    at = read.lines.index(first)
    if at:
        return read.lines[at - 1].place
    if read.is_all:
        return _START
    return Place(first.place.offset, max(0, first.place.lines - 1))


def forward(selection: Selection, after: Places, limit: int) -> LogPage:
    """The next lines behind a place."""
    read = [_ahead(file, selection, after.get(file.number, _START), limit) for file in selection.files]
    # Likewise nothing newer is shown than what one log has been read up to.
    ceilings = [each.lines[-1].line.time_ns for each in read if not each.is_all and each.lines]
    ceiling = min(ceilings, default=None)
    every = sorted(((each.file.number, line) for each in read for line in each.lines), key=_time)
    merged = [each for each in every if ceiling is None or _time(each) <= ceiling][:limit]
    last = {number: line.place for number, line in merged}
    left = {number for number, _ in every[len(merged) :]}
    ends = {each.file.number: _behind(each, after, last, left) for each in read}
    is_end = len(merged) == len(every) and all(each.is_all for each in read)
    starts = {each.file.number: after.get(each.file.number, _START) for each in read}
    opened = [line for each in read for line in each.open] if is_end else []
    return LogPage([line for _, line in merged], starts, ends, not any(map(any, starts.values())), is_end, opened)


def _ahead(file: LogFile, selection: Selection, place: Place, limit: int) -> _OfLog:
    """Lines of one log behind a place."""
    size = pieces.size_of(file.path)
    if place.offset > size:  # it is another log by now
        place = _START
    found: list[LocatedLine] = []
    opened: list[Line] = []
    at, length = place.offset, max(_LEAST_PIECE, _PIECE // len(selection.files))
    while at < size and len(found) < limit and at - place.offset <= _BUDGET // len(selection.files):
        end = size if size - at <= length else pieces.boundary(file.path, at + length)
        piece = pieces.lines_of(file, at, end, selection)
        found += (each for each in piece.lines if each.place > place)
        opened = piece.open
        if piece.end <= at or (end == size and piece.end < size):  # the rest is still being written
            at, size = piece.end, piece.end
            break
        at = end
    reached = Place(at, 0) if len(found) <= limit else found[limit - 1].place
    return _OfLog(file, found[:limit], reached, at >= size and len(found) <= limit, opened, Place(at, 0))


def _behind(read: _OfLog, after: Places, last: dict[int, Place], left: set[int]) -> Place:
    """Behind what is shown of a log; where that is all that was read of it, as far as it was read."""
    number = read.file.number
    if number in left:
        return last.get(number) or after.get(number, _START)
    return max(read.reached, last.get(number, _START))


def _time(each: tuple[int, LocatedLine]) -> int:
    return each[1].line.time_ns
