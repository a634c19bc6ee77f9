"""What a host measures, its scripts log and its ranks record: files that grow, and tails that begin anew.

`estimator_container.telemetry.history` and `logged` say what is in them, and `training.window` what ranks record.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from estimator_container.contract.names import Layout

from .trees import PIECE, Item, end, piece

FOLDERS = tuple(getattr(Layout(""), each).strip("/") for each in ("telemetry", "logged_metrics", "timelines"))
"""Below the base directory of a host."""
_CLOCKS = Layout("").clocks
_TAIL = ".tail"
_UNFINISHED = ".new"


class _Sent(NamedTuple):
    """How far a file is at the other end."""

    inode: int
    size: int
    checksum: int
    """Of so many bytes, where they may have changed."""


def is_tail(path: str) -> bool:
    """Whether what a file holds may change."""
    return path.endswith(_TAIL)


def is_begun_window(path: str) -> bool:
    """Whether a file is the one that a host writes as it begins a window of its timeline, such as `17.json`."""
    folder, _, name = path.rpartition("/")
    return folder == FOLDERS[-1] and name.removesuffix(".json").isdigit()


def is_replaced(path: str) -> bool:
    """Whether a file is written anew each time, and does not grow."""
    return path.endswith(_CLOCKS)


def in_order(paths: Iterable[str]) -> list[str]:
    """Those of one folder as they are to be brought: what a rank says of a window after the files that it names.

    >>> in_order(["7-0.json", "7-0.torch.json", "7.json"])
    ['7-0.torch.json', '7-0.json', '7.json']
    """
    return sorted(paths, key=lambda path: (-path.rpartition("/")[2].count("."), path))


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
    return [f"{folder}/{name}" for name in in_order(found) if not name.endswith(_UNFINISHED)]


def _read(base: str, path: str) -> bytes:
    try:
        return Path(base, path).read_bytes()
    except FileNotFoundError:
        return b""
