"""Bring files and folders from one process of a job to another, over messages that arrive in order.

Who sends has a few pieces under way at a time, so that what is large is in the memory of neither.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import stat
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import IO, NamedTuple

PIECE = 1 << 18
"""Bytes of a file in one message."""
_UNDER_WAY = 8
"""Messages that have not been taken yet."""
FOLDER, FILE, LINK, DATA, END = "folder", "file", "link", "data", "end"

Item = tuple[str, ...]


class Outbox:
    """Sends items, in their order, as fast as they are taken."""

    def __init__(self, send: Callable[..., None]) -> None:
        """`send` takes the fields of a message."""
        self._send = send
        self._waiting: deque[tuple[Iterator[Item], Callable[[], None] | None]] = deque()
        self._under_way = 0

    def put(self, items: Iterator[Item], then: Callable[[], None] | None = None) -> None:
        """Send these after all others; `then` is called once all have been taken."""
        self._waiting.append((items, then))
        self._go_on()

    def taken(self) -> None:
        """The other end has taken one more."""
        self._under_way -= 1
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and self._under_way < _UNDER_WAY:
            items, then = self._waiting[0]
            item = next(items, None)
            if item is not None:
                self._under_way += 1
                self._send(*item)
                continue
            if self._under_way:
                return
            self._waiting.popleft()
            if then is not None:
                then()


def tree(
    root: str,
    names: Collection[str],
    without: Collection[str] = (),
    follow: bool = False,
    common: str = "",
    unreadable: list[str] | None = None,
) -> Iterator[Item]:
    """What is below a folder under these names, as items; `without` are paths below it that are left out.

    Links are followed or brought as they are. One into `common`, a folder that the other end has, too, is not followed
    in any case: it leads to the same there. What is none of files, folders and links is left out, and so is what goes
    away meanwhile. What cannot be read is named in `unreadable`, with the reason. Raises OSError without that.
    """
    waiting = deque(names)
    while waiting:
        name = waiting.popleft()
        path = os.path.join(root, name)  # noqa: PTH118
        if name in without:
            continue
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode) and follow:
                if common and (leads_to := os.path.realpath(path)).startswith(f"{os.path.realpath(common)}/"):
                    yield LINK, name, leads_to
                    continue
                status = os.stat(path)  # noqa: PTH116
            if stat.S_ISDIR(status.st_mode):
                yield FOLDER, name, str(stat.S_IMODE(status.st_mode))
                waiting.extend(os.path.join(name, each) for each in sorted(os.listdir(path)))  # noqa: PTH118, PTH208
            elif stat.S_ISLNK(status.st_mode):
                yield LINK, name, _as_relative(root, path, os.readlink(path))  # noqa: PTH115
            elif stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:  # noqa: PTH123
                    yield FILE, name, str(stat.S_IMODE(status.st_mode)), _encoded(file.read(PIECE))
                    yield from _pieces(file, name)
        except FileNotFoundError:
            continue
        except OSError as error:
            if unreadable is None:
                raise
            unreadable.append(f"{name}: {error.strerror}")


def _as_relative(root: str, path: str, target: str) -> str:
    """What a link says, so that it leads to the same place where the folder has another path."""
    is_inside = target.startswith(f"{root}/")
    return os.path.relpath(target, os.path.dirname(path)) if is_inside else target  # noqa: PTH120


def _pieces(file: IO[bytes], name: str) -> Iterator[Item]:
    """Those after the first."""
    offset = file.tell()
    while data := file.read(PIECE):
        yield piece(name, offset, data)
        offset += len(data)


def piece(name: str, offset: int, data: bytes) -> Item:
    """These bytes of a file, as an item."""
    return DATA, name, str(offset), _encoded(data)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def end(name: str, size: int) -> Item:
    """That a file has no more than so many bytes, as an item."""
    return END, name, str(size)


class TreeLanding(NamedTuple):
    """Where items arrive: nothing is written outside of the folder, and through no link."""

    root: str

    def take(self, kind: str, name: str, *fields: str) -> None:
        """Do what an item says. Raises OSError, and ValueError for a place outside of the folder."""
        path = self._place(name)
        if kind == FOLDER:
            os.makedirs(path, 0o700, exist_ok=True)  # noqa: PTH103
            os.chmod(path, int(fields[0]) & 0o777 | 0o700)  # noqa: PTH101
        elif kind == LINK:
            _remove(path)
            os.symlink(fields[0], path)  # noqa: PTH211
        elif kind == FILE:
            _put(path, int(fields[0]) & 0o777 | 0o600, base64.b64decode(fields[1]))
        elif kind == END:
            with contextlib.suppress(FileNotFoundError):
                os.truncate(path, int(fields[0]))
        elif kind == DATA:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                write_all(fd, base64.b64decode(fields[1]), int(fields[0]))
            finally:
                os.close(fd)

    def _place(self, name: str) -> str:
        parts = name.split("/")
        if not name or any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"{name!r} is not the name of something below a folder")
        above = self.root
        for part in parts[:-1]:
            above = os.path.join(above, part)  # noqa: PTH118
            if os.path.islink(above):  # noqa: PTH114
                raise ValueError(f"{name!r} leads through a link")
        os.makedirs(above, 0o700, exist_ok=True)  # noqa: PTH103
        return os.path.join(above, parts[-1])  # noqa: PTH118


def _put(path: str, mode: int, data: bytes) -> None:
    """Make a file that begins with `data`, in the place of what is there.

    It appears with them: who looks for a small one, such as a verdict, meets it whole.
    """
    draft = os.path.join(os.path.dirname(path), f".{os.urandom(8).hex()}.new")  # noqa: PTH118, PTH120
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            write_all(fd, data)
        finally:
            os.close(fd)
        _remove(path)
        os.rename(draft, path)  # noqa: PTH104
    except OSError:
        _remove(draft)
        raise


def write_all(fd: int, data: bytes, offset: int = 0) -> None:
    """Write all of `data` at a place of an open file. Raises OSError."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)  # noqa: PTH108
