"""The files in which a host keeps what it measures: fine rows of the newest time, coarse ones of all of it.

A level has a row for so many seconds, and as many bytes as it may take: when there would be more, its oldest file goes.
A row of the finest level has one value a series; one of the others has three, the mean, the lowest and the highest of
the finest rows in it. Each level appends to `LEVEL-TIME.rows`, LEVEL in seconds and TIME that of the file's first row,
in blocks, and the rows that make no block yet to `LEVEL.tail`, which begins anew with each block.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from . import blocks
from .metric_table import KINDS, SeriesKey

MEGABYTE = 1_000_000


class Level(NamedTuple):
    """How fine, and how much of it is kept."""

    seconds: int
    """From one row to the next."""
    most_bytes: int
    values: int
    """Of each series in a row."""


LEVELS = (Level(2, 14 * MEGABYTE, 1), Level(60, 22 * MEGABYTE, 3), Level(900, 10 * MEGABYTE, 3))


class MachineSample(NamedTuple):
    """What is kept of a series for one row, in the unit of its metric."""

    time: float
    """When it was measured, or the time that it covers begins: seconds since 1970."""
    low: float
    mean: float
    high: float


def read(
    folder: str, level: Level, first_ms: int, last_ms: int, wanted: Collection[str] | None = None
) -> dict[SeriesKey, list[MachineSample]]:
    """What one level has of the time from the first to the last millisecond, of the metrics with these names.

    A series with nothing in that time is left out. Raises OSError for files that cannot be read.
    """
    found: dict[SeriesKey, list[MachineSample]] = {}
    latest = -1
    for data in _contents(folder, level, first_ms):
        keys: list[SeriesKey] = []
        for record in blocks.records(data):
            if record.kind == blocks.SERIES:
                keys = _keys(record.body)
            elif record.last_ms >= first_ms and record.first_ms <= last_ms and record.last_ms > latest:
                # A block that was written just before the end of its writer may still be in the tail, too.
                _take(record, keys, level, (max(first_ms, latest + 1), last_ms), wanted, found)
                latest = record.last_ms
    return found


def first_time_ms(folder: str, level: Level) -> int | None:
    """When the first row that a level still has begins; None where it has none."""
    paths = files(folder, level)
    return _time_of(paths[0]) if paths else next((record.first_ms for record in _rows(folder, level, 0)), None)


def last_time_ms(folder: str, level: Level) -> int | None:
    """When the last row of a level begins; None where it has none."""
    newest = files(folder, level)[-1:]
    since = _time_of(newest[0]) if newest else 0
    return max((record.last_ms for record in _rows(folder, level, since)), default=None)


def _take(
    record: blocks.FileRecord,
    keys: Sequence[SeriesKey],
    level: Level,
    span: tuple[int, int],
    wanted: Collection[str] | None,
    found: dict[SeriesKey, list[MachineSample]],
) -> None:
    try:
        times, columns = record.columns(level.values * len(keys))
    except (ValueError, zlib.error):  # a script may write here, too
        return
    for place, key in enumerate(keys):
        kind = KINDS.get(key.metric)
        if kind is None or (wanted is not None and key.metric not in wanted):
            continue
        own = columns[level.values * place : level.values * (place + 1)]
        mean, low, high = own * 3 if level.values == 1 else own
        samples = [
            MachineSample(time / 1000, low[at] * kind.precision, value * kind.precision, high[at] * kind.precision)  # type: ignore[operator]
            for at, (time, value) in enumerate(zip(times, mean))
            if value is not None and span[0] <= time <= span[1]
        ]
        if samples:
            found.setdefault(key, []).extend(samples)


def _keys(body: bytes) -> list[SeriesKey]:
    """The series that a record names; none where it is not one of ours."""
    try:
        keys = [SeriesKey(*fields) for fields in json.loads(body)]
    except (ValueError, TypeError, RecursionError):
        return []
    is_ours = all(isinstance(key.metric, str) and isinstance(key.part, str) for key in keys)
    return keys if is_ours and all(key.rank is None or isinstance(key.rank, int) for key in keys) else []


def tail(folder: str, level: Level) -> str:
    """The file of the rows that make no block yet."""
    return os.path.join(folder, f"{level.seconds}.tail")


def file_of_rows(folder: str, level: Level, first_ms: int) -> str:
    """A file of blocks, by the time of its first row."""
    return os.path.join(folder, f"{level.seconds}-{first_ms:014}.rows")


def files(folder: str, level: Level) -> list[str]:
    """Those of a level with blocks, the oldest first."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    pattern = re.compile(rf"{level.seconds}-\d{{14}}\.rows")
    return [os.path.join(folder, name) for name in sorted(names) if pattern.fullmatch(name)]


def first_time_in(path: str) -> int | None:
    """When the first row in a file begins; None where there is none."""
    return next((record.first_ms for record in blocks.records(_bytes(path)) if record.kind != blocks.SERIES), None)


def _time_of(path: str) -> int:
    return int(os.path.basename(path).partition("-")[2].partition(".")[0])


def _contents(folder: str, level: Level, first_ms: int) -> Iterator[bytes]:
    """What is in the files that may have rows from that time on, in order."""
    # The tail is read before the files are looked for: what leaves it meanwhile is in one of these.
    newest = _bytes(tail(folder, level))
    paths = files(folder, level)
    for path, following in zip(paths, [*paths[1:], None]):
        if following is None or _time_of(following) >= first_ms:
            yield _bytes(path)
    yield newest


def _rows(folder: str, level: Level, first_ms: int) -> Iterator[blocks.FileRecord]:
    for data in _contents(folder, level, first_ms):
        yield from (record for record in blocks.records(data) if record.kind != blocks.SERIES)


def _bytes(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO would be waited for
    except FileNotFoundError:  # the oldest file may just have been removed
        return b""
    with open(fd, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(fd).st_mode) else b""
