"""What a host measures and its scripts log: files that grow, and tails that begin anew once a block of them is kept.

`estimator_container.telemetry.history` and `logged` say what is in them.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .trees import PIECE, Item, end, piece

FOLDERS = ("output/logs/telemetry", "output/logs/metrics")
"""Below the base directory of a host."""
_TAIL = ".tail"


class _Sent(NamedTuple):
    """How far a file is at the other end."""

    inode: int
    size: int
    checksum: int
    """Of so many bytes, where they may have changed."""


def is_tail(path: str) -> bool:
    """Whether what a file holds may change."""
    return path.endswith(_TAIL)


def known_part(data: bytes, size: int, checksum: int) -> int | None:
    """How much of a tail is known where so many bytes with that checksum are; None where it has begun anew."""
    return size if size <= len(data) and zlib.crc32(data[:size]) == checksum else None


class MeasuredFiles:
    """Those of one host, as they are sent."""

    def __init__(self) -> None:
        self._sent: dict[str, _Sent] = {}

    def news(self, base: str) -> Iterator[Item]:
        """What is new in the base directory since the last call.

        The tails are read first and sent last: what leaves them meanwhile is in a file that is sent before.
        """
        paths = [path for folder in FOLDERS for path in _regular_files(base, folder)]
        tails = {path: _read(base, path) for path in paths if is_tail(path)}
        for path in paths:
            if path not in tails:
                yield from self._growth(base, path)
        for path, data in tails.items():
            yield from self._tail(path, data)

    def _growth(self, base: str, path: str) -> Iterator[Item]:
        try:
            with Path(base, path).open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                known = self._sent.get(path)
                offset = known.size if known is not None and known.inode == inode else 0
                if not offset and known is not None:
                    yield end(path, 0)
                file.seek(offset)
                while data := file.read(PIECE):
                    yield piece(path, offset, data)
                    offset += len(data)
                    self._sent[path] = _Sent(inode, offset, 0)
        except FileNotFoundError:  # the oldest may just have been removed
            return

    def _tail(self, path: str, data: bytes) -> Iterator[Item]:
        known = self._sent.get(path)
        offset = known_part(data, known.size, known.checksum) if known is not None else None
        if offset == len(data):
            return
        yield piece(path, offset or 0, data[offset or 0 :])
        if offset is None:
            yield end(path, len(data))
        self._sent[path] = _Sent(0, len(data), zlib.crc32(data))


def _regular_files(base: str, folder: str) -> list[str]:
    """A script may make anything there."""
    try:
        with os.scandir(os.path.join(base, folder)) as entries:  # noqa: PTH118
            found = [each.name for each in entries if stat.S_ISREG(each.stat(follow_symlinks=False).st_mode)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [f"{folder}/{name}" for name in sorted(found)]


def _read(base: str, path: str) -> bytes:
    try:
        return Path(base, path).read_bytes()
    except FileNotFoundError:
        return b""
