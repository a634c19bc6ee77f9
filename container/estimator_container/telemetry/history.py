"""The files in which a host keeps what it measures: fine rows of the newest time, coarse ones of all of it.

A level has a row for so many seconds, and as many bytes as it may take: when there would be more, its oldest file goes.
A row of the finest level has one value a series; one of the others has three, the mean, the lowest and the highest of
the finest rows in it. Each level appends to `LEVEL-TIME.rows`, LEVEL in seconds and TIME that of the file's first row,
in blocks, and the rows that make no block yet to `LEVEL.tail`, which begins anew with each block.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from . import blocks
from .blocks import Row
from .metric_table import KINDS, SeriesKey

MEGABYTE = 1_000_000
ROWS_OF_A_BLOCK = 60
FILES_OF_A_LEVEL = 8


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


class History:
    """Writes the files of a host, in a folder that is made if necessary."""

    def __init__(self, folder: str, levels: Sequence[Level] = LEVELS) -> None:
        """Raises OSError, as every method."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._keys: list[SeriesKey] = []
        self._places: dict[SeriesKey, int] = {}
        self._files = [_LevelFiles(folder, level) for level in levels]
        self._folds = [_Fold(level) for level in levels[1:]]

    def add(self, time_ms: int, values: Mapping[SeriesKey, float]) -> None:
        """Keep what was measured at a time, which is later than that of the call before."""
        new = [key for key in values if key not in self._places]
        if new:
            for key in new:
                self._places[key] = len(self._keys)
                self._keys.append(key)
            for files in self._files:
                files.begin_series(self._keys)
        row: list[int | None] = [None] * len(self._keys)
        for key, value in values.items():
            row[self._places[key]] = round(value / KINDS[key.metric].precision)
        self._files[0].add(Row(time_ms, row))
        for fold in self._folds:
            if fold.is_over(time_ms):
                self._keep_fold(fold)
            fold.add(time_ms, row)

    def _keep_fold(self, fold: _Fold) -> None:
        row = fold.take(len(self._keys))
        if row is not None:
            self._files[1 + self._folds.index(fold)].add(row)


class _Fold:
    """The rows of one level that become one row of a coarser level."""

    def __init__(self, level: Level) -> None:
        self._length = 1000 * level.seconds
        self._begin: int | None = None
        self._rows: list[Sequence[int | None]] = []

    def is_over(self, time_ms: int) -> bool:
        return self._begin is not None and time_ms // self._length != self._begin

    def add(self, time_ms: int, row: Sequence[int | None]) -> None:
        self._begin = time_ms // self._length
        self._rows.append(row)

    def take(self, series: int) -> Row | None:
        """The row, of so many series, those that came later among them; None where there is nothing in it."""
        if self._begin is None:
            return None
        values: list[int | None] = []
        for column in zip_longest(*self._rows, [None] * series):
            there = [value for value in column if value is not None]
            values += [round(sum(there) / len(there)), min(there), max(there)] if there else [None, None, None]
        time_ms = self._begin * self._length
        self._begin, self._rows = None, []
        return Row(time_ms, values)


class _LevelFiles:
    """The files of one level."""

    def __init__(self, folder: str, level: Level) -> None:
        self._folder = folder
        self._level = level
        self._tail = os.open(_tail(folder, level), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._file: int | None = None
        self._rows: list[Row] = []
        self._series = b""

    def begin_series(self, keys: Sequence[SeriesKey]) -> None:
        """Rows have the values of these series from now on."""
        self._close_block()
        self._series = blocks.record(blocks.SERIES, json.dumps(keys, separators=(",", ":")).encode())
        self._write(self._tail, self._series)
        if self._file is not None:
            self._write(self._file, self._series)

    def add(self, row: Row) -> None:
        self._write(self._tail, blocks.block(blocks.PLAIN, [row]))
        self._rows.append(row)
        if len(self._rows) >= ROWS_OF_A_BLOCK:
            self._close_block()
            self._write(self._tail, self._series)

    def _close_block(self) -> None:
        if self._rows:
            if self._file is None:
                path = os.path.join(self._folder, f"{self._level.seconds}-{self._rows[0].time_ms:014}.rows")
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                self._write(self._file, self._series)
            self._write(self._file, blocks.block(blocks.DEFLATED, self._rows))
            self._rows = []
            self._limit()
        os.ftruncate(self._tail, 0)
        os.lseek(self._tail, 0, os.SEEK_SET)

    def _limit(self) -> None:
        """Begin another file, and remove the oldest, where there is more than may be."""
        assert self._file is not None
        share = self._level.most_bytes // FILES_OF_A_LEVEL
        if os.fstat(self._file).st_size < share:
            return
        os.close(self._file)
        self._file = None
        files = _files(self._folder, self._level)
        for path in files[: max(0, len(files) - FILES_OF_A_LEVEL + 1)]:
            os.unlink(path)

    def _write(self, fd: int, data: bytes) -> None:
        while data:
            data = data[os.write(fd, data) :]


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
                keys = [SeriesKey(*fields) for fields in json.loads(record.body)]
            elif record.last_ms >= first_ms and record.first_ms <= last_ms and record.last_ms > latest:
                # A block that was written just before the end of its writer may still be in the tail, too.
                _take(record, keys, level, (max(first_ms, latest + 1), last_ms), wanted, found)
                latest = record.last_ms
    return found


def first_time_ms(folder: str, level: Level) -> int | None:
    """When the first row that a level still has begins; None where it has none."""
    files = _files(folder, level) if os.path.isdir(folder) else []
    return _time_of(files[0]) if files else next((record.first_ms for record in _rows(folder, level, 0)), None)


def last_time_ms(folder: str, level: Level) -> int | None:
    """When the last row of a level begins; None where it has none."""
    newest = _files(folder, level)[-1:] if os.path.isdir(folder) else []
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
    times, columns = record.columns(level.values * len(keys))
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


def _tail(folder: str, level: Level) -> str:
    return os.path.join(folder, f"{level.seconds}.tail")


def _files(folder: str, level: Level) -> list[str]:
    """Those of a level, the oldest first."""
    names = sorted(name for name in os.listdir(folder) if name.startswith(f"{level.seconds}-"))
    return [os.path.join(folder, name) for name in names]


def _time_of(path: str) -> int:
    return int(os.path.basename(path).partition("-")[2].partition(".")[0])


def _contents(folder: str, level: Level, first_ms: int) -> Iterator[bytes]:
    """What is in the files that may have rows from that time on, in order."""
    # The tail is read before the files are looked for: what leaves it meanwhile is in one of these.
    tail = _bytes(_tail(folder, level))
    files = _files(folder, level) if os.path.isdir(folder) else []
    for path, following in zip(files, [*files[1:], None]):
        if following is None or _time_of(following) >= first_ms:
            yield _bytes(path)
    yield tail


def _rows(folder: str, level: Level, first_ms: int) -> Iterator[blocks.FileRecord]:
    for data in _contents(folder, level, first_ms):
        yield from (record for record in blocks.records(data) if record.kind != blocks.SERIES)


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:  # the oldest file may just have been removed
        return b""
