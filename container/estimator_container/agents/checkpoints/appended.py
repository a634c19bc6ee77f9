"""A file that is only ever appended to, such as a log, as it is at one moment while somebody has it open."""

from __future__ import annotations

import hashlib
import os
import time
from typing import IO, TYPE_CHECKING

from ...storage import SourceChanged
from ..watching.state import TICK_NS, Stamp
from .format import File

if TYPE_CHECKING:
    from hashlib import _Hash

_CHUNK = 4 << 20  # bytes


class Rewritten(Exception):
    """The file does not begin with what it was: whoever has it open does more than append."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class StillWritten(SourceChanged):
    """The file was written without a pause in which it could have been read."""


def copy_log(folder: str, before: File, target: str) -> tuple[Stamp, str]:
    """Copy a file that has grown since it was `before`. Returns its stamp and SHA-256 at the moment of the copy.

    A file that nobody wrote between two looks, neither of them within a clock tick of a write, held what was read
    in between at every moment of it. Raises Rewritten, StillWritten and OSError.
    """
    path = os.path.join(folder, before.path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(fd, "rb") as source, open(target, "wb") as copied:
        stamp = _at_rest(fd, before.path)
        hasher = hashlib.sha256()
        beginning = _take(source, copied, hasher, min(before.size, stamp.size)).hexdigest()
        whole = _take(source, copied, hasher, max(0, stamp.size - before.size)).hexdigest()
        if Stamp.from_status(os.fstat(fd)) != stamp or Stamp.from_status(os.lstat(path)) != stamp:
            raise StillWritten(f"{before.path} is being written without a pause")
    if beginning != before.sha256:
        raise Rewritten(before.path)
    return stamp, whole


def _at_rest(fd: int, path: str) -> Stamp:
    """The stamp of a file that was not written within the last tick: another write will show in it."""
    stamp = Stamp.from_status(os.fstat(fd))
    if 0 <= time.time_ns() - stamp.ctime_ns < TICK_NS:
        time.sleep(TICK_NS / 1e9)
        if Stamp.from_status(os.fstat(fd)) != stamp:
            raise StillWritten(f"{path} is being written without a pause")
    return stamp


def _take(source: IO[bytes], copied: IO[bytes], hasher: _Hash, size: int) -> _Hash:
    """Read so many bytes, or what there is. Returns the state of the hash after that."""
    while size > 0 and (chunk := source.read(min(size, _CHUNK))):
        copied.write(chunk)
        hasher.update(chunk)
        size -= len(chunk)
    return hasher
