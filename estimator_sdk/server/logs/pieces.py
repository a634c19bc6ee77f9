"""Lines of a piece of one host's log, each with its place: what every view of a log is made of."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from estimator_container.logs.frames import (
    EVENT,
    HEADER_SIZE,
    MAGIC,
    MAX_PAYLOAD,
    Frame,
    FrameParser,
    end_of_frame,
    frame_begin,
    time_of_frame,
)
from estimator_container.logs.lines import Line, LineAssembler

from ...errors import EstimatorError
from .selection import LogFile, Place, Selection

PRIME = 1 << 15
"""Bytes before a piece that are read for the begins of lines which end in it."""
_NEAR = HEADER_SIZE + MAX_PAYLOAD  # bytes in which the frame before is looked for that a line may begin in
_MISSING = (FileNotFoundError, NotADirectoryError)
MOST_WHOLE = 1 << 28
"""Bytes of logs that are read as a whole for an answer: it takes seconds for each 100 MB."""
_LOOK = 1 << 16  # bytes in which the begin of a frame is looked for


class LocatedLine(NamedTuple):
    """A line, and the place behind it."""

    place: Place
    line: Line
    is_whole: bool
    """Whether its begin is there too: of a line that is longer than a piece there may be the end alone."""


class Piece(NamedTuple):
    """Lines that end in a piece of a log."""

    lines: list[LocatedLine]
    open: list[Line]
    """The newest states of the lines that have no end yet in the piece."""
    end: int
    """Where the piece ends: before a frame that is still being written."""


def size_of(path: Path) -> int:
    """Bytes of a log, 0 where there is none. Raises OSError for one that cannot be looked at."""
    try:
        return path.stat().st_size
    except _MISSING:
        return 0


def check_whole(job: str, paths: Iterable[Path], command: str) -> int:
    """Bytes of all logs of a job, for what is made of all of them. Raises EstimatorError where these are too many."""
    size = sum(map(size_of, paths))
    if size > MOST_WHOLE:
        what = f"the logs of {job} have {size / 1e6:.0f} MB, and this is made of all of them"
        raise EstimatorError(f"{what}; ask for it with `{command}`")
    return size


def read(path: Path, start: int, end: int) -> bytes:
    """Bytes of a log from `start` up to `end`, fewer where it is shorter. Raises OSError as `size_of`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except _MISSING:
        return b""
    try:
        return os.pread(fd, max(0, end - start), start)
    finally:
        os.close(fd)


def boundary(path: Path, offset: int) -> int:
    """The first frame's begin at `offset` or behind it; the file's end where there is none."""
    if offset <= 0:
        return 0
    size = size_of(path)
    while offset < size:
        data = read(path, offset, min(size, offset + _LOOK))
        at = data.find(MAGIC)
        while at >= 0:
            if end_of_frame(data, at) is not None:
                return offset + at
            at = data.find(MAGIC, at + 1)
        offset += max(1, len(data) - len(MAGIC) + 1) if len(data) >= len(MAGIC) else size
    return size


def lines_of(file: LogFile, start: int, end: int, selection: Selection) -> Piece:
    """The chosen lines that end in the frames from `start` up to `end`; a frame begins at each of both."""
    primed = min(start, boundary(file.path, start - PRIME))
    data = read(file.path, primed, end)
    frames = FrameParser().located(data)
    stop = len(data)
    if frames and not selection.is_final:
        frames, stop = _settled(data, frames)
    reader = Continuous(file, selection)
    found = reader.take(primed, frames, start, is_begin=primed == 0)
    if selection.is_final and end >= size_of(file.path):
        found += reader.rest(end)
    return Piece(found, reader.open(), primed + stop)


class Continuous:
    """Makes lines of one log's frames, piece after piece."""

    def __init__(self, file: LogFile, selection: Selection) -> None:
        self._file = file
        self._selection = selection
        self._assembler = LineAssembler(file.host)
        self._begun = set[tuple[int, int]]()

    def lines(self, start: int, end: int) -> list[LocatedLine]:
        """The chosen lines that end in the next piece."""
        return self.take(start, FrameParser().located(read(self._file.path, start, end)), start, is_begin=True)

    def take(self, base: int, frames: list[tuple[int, Frame]], start: int, is_begin: bool) -> list[LocatedLine]:
        """The lines that end at `start` or behind it, of frames whose places are counted from `base`.

        `is_begin`: whether each line that ends in them begins in them, or in those that were taken before.
        """
        found: list[LocatedLine] = []
        for at, frame in frames:
            if frame.stream == EVENT or not self._selection.takes(frame.rank, frame.stream):
                continue
            block = self._assembler.feed(frame)
            if block is None:
                continue
            is_first = not is_begin and (frame.rank, frame.stream) not in self._begun
            self._begun.add((frame.rank, frame.stream))
            if base + at >= start:
                for number, line in enumerate(block.lines(), 1):
                    is_whole = not is_first or number > 1 or self._begins_behind(base, frame)
                    found.append(LocatedLine(Place(base + at, number), line, is_whole))
        return found

    def _begins_behind(self, base: int, frame: Frame) -> bool:
        """Whether the last bytes of a frame's stream before `base` end a line, as far as they are near."""
        data = read(self._file.path, max(0, base - _NEAR), base)
        at = data.rfind(frame_begin(frame.stream, frame.rank))
        end = None if at < 0 else end_of_frame(data, at)
        return end is None or end > len(data) or data[end - 1 : end] == b"\n"

    def open(self) -> list[Line]:
        """The newest states of the lines that have no end yet."""
        return list(self._assembler.news())

    def rest(self, end: int) -> list[LocatedLine]:
        """What is left without an end of line at the end of a log, which is at `end`."""
        rest = (line for block in self._assembler.flush() for line in block.lines())
        return [LocatedLine(Place(end, number), line, True) for number, line in enumerate(rest, 1)]


def lines_up_to(file: LogFile, place: Place, selection: Selection) -> list[LocatedLine]:
    """The chosen lines that end in the frame of a place, up to there."""
    if not place.lines:
        return []
    inside = lines_of(file, place.offset, boundary(file.path, place.offset + 1), selection).lines
    return [each for each in inside if each.place <= place]


def _settled(data: bytes, frames: list[tuple[int, Frame]]) -> tuple[list[tuple[int, Frame]], int]:
    """The frames without one that is still being written, and where the next one begins."""
    at = frames[-1][0]
    end = end_of_frame(data, at)
    if end is None:
        return frames, len(data)
    return (frames[:-1], at) if end > len(data) else (frames, end)


def places_at(selection: Selection, time_ns: int) -> dict[int, Place]:
    """In front of the lines of a time, in each log; a few earlier ones may follow."""
    return {file.number: Place(_offset_at(file.path, time_ns), 0) for file in selection.files}


def _offset_at(path: Path, time_ns: int) -> int:
    low, high = 0, size_of(path)
    while high - low > _LOOK // 2:
        middle = (low + high) // 2
        begin = boundary(path, middle)
        head = read(path, begin, begin + HEADER_SIZE)
        if begin >= high or len(head) < HEADER_SIZE or time_of_frame(head, 0) >= time_ns:
            high = middle
        else:
            low = begin
    return low


def pieces_back(file: LogFile, before: int, size: int) -> Iterator[tuple[int, int]]:
    """The log before a frame's begin in pieces, the last one first; each begins and ends at a frame."""
    end = before
    while end > 0:
        start = boundary(file.path, end - size)
        if start >= end:  # a frame is longer than a piece
            start = boundary(file.path, end - size - MAX_PAYLOAD)
            start = start if start < end else 0
        yield start, end
        end = start


_TORN = re.compile(re.escape(MAGIC.lower()) + rb"[\1\2\4](?<=[^\n}].{5})", re.DOTALL)


def has_torn_line(folded: bytes) -> bool:
    """Whether a frame of lines, in bytes whose letters are in lower case, begins behind one that ends within a line."""
    return _TORN.search(folded) is not None
