"""Writing what a host measures to its files, which `history` describes and reads."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from ..runtime import private_folder
from . import blocks, history
from .blocks import Row
from .history import LEVELS, Level
from .metric_table import KINDS, SeriesKey

ROWS_OF_A_BLOCK = 60
FILES_OF_A_LEVEL = 8


class History:
    """Writes the files of a host, in a folder that is made if necessary.

    After an OSError another one goes on in the same folder: a file may end with a record that was cut short.
    """

    def __init__(self, folder: str, levels: Sequence[Level] = LEVELS) -> None:
        """Raises OSError, as every method."""
        private_folder.make_below(folder, 0o700)
        self._keys: list[SeriesKey] = []
        self._places: dict[SeriesKey, int] = {}
        self._files: list[_LevelFiles] = []
        try:
            for level in levels:
                self._files.append(_LevelFiles(folder, level))
        except OSError:
            self.close()
            raise
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

    def close(self) -> None:
        """Close the files, with what they have."""
        for files in self._files:
            files.close()

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
        _keep_tail(folder, level)
        self._tail = os.open(history.tail(folder, level), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
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

    def close(self) -> None:
        for fd in (self._tail, self._file):
            if fd is not None:
                with contextlib.suppress(OSError):  # of a full disk, which closes it all the same
                    os.close(fd)

    def _close_block(self) -> None:
        if self._rows:
            if self._file is None:
                path = history.file_of_rows(self._folder, self._level, self._rows[0].time_ms)
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
        fd, self._file = self._file, None
        os.close(fd)
        files = history.files(self._folder, self._level)
        for path in files[: max(0, len(files) - FILES_OF_A_LEVEL + 1)]:
            os.unlink(path)

    def _write(self, fd: int, data: bytes) -> None:
        while data:
            data = data[os.write(fd, data) :]


def _keep_tail(folder: str, level: Level) -> None:
    """Make the tail that another one has left a file of its own, unless its rows are in a block by now."""
    path = history.tail(folder, level)
    first = history.first_time_in(path)
    if first is not None:
        target = history.file_of_rows(folder, level, first)
        if not os.path.exists(target):
            os.rename(path, target)
