"""A file that appears whole or not at all: written under a name of our own, then renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator

from .errors import NoSpace, StorageError
from .location import unfinished_name

_BLOCK = 1 << 20  # bytes; it stays in a processor's cache
LEFT_SECONDS = 3600.0
"""After which an unfinished file that nobody writes to counts as left; a writer that is still there gets an error."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Landing:
    """`with Landing(path) as landing: landing.write(data); landing.commit()`; without the commit nothing is left."""

    def __init__(self, path: str, *, durable: bool = False) -> None:
        self.path = path = os.path.abspath(path)
        self.temporary = os.path.join(os.path.dirname(path), unfinished_name())
        """In the same folder, and of a length that does not depend on the name."""
        self.fd = -1
        self._durable = durable
        self._landed = False

    def __enter__(self) -> Landing:
        with disk_errors(self.path):
            self.fd = self._open()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
        if not self._landed:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.temporary)

    def set_size(self, size: int) -> None:
        """Let parts of so many bytes come in any order, and find a full disk before they do.

        Space is not taken: file systems that cannot do that alone write all of the file for it, and one in memory
        fills it with zeros, which took a tenth of a transfer.
        """
        with disk_errors(self.path):
            disk = os.fstatvfs(self.fd)
            if disk.f_blocks and disk.f_bfree * disk.f_frsize < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.ftruncate(self.fd, size)

    def write(self, data: bytes | memoryview, offset: int = 0) -> None:
        """Write all of `data` at `offset`."""
        view = memoryview(data)
        with disk_errors(self.path):
            while view:
                written = os.pwrite(self.fd, view, offset)
                view = view[written:]
                offset += written

    def blocks(self, start: int, end: int) -> Iterator[memoryview]:
        """What has been written from `start` to `end`, in pieces that are each valid until the next."""
        view = memoryview(bytearray(min(_BLOCK, end - start)))
        read = -1
        while start < end and read != 0:
            with disk_errors(self.path):
                read = os.preadv(self.fd, [view[: end - start]], start)
            yield view[:read]
            start += read

    def commit(self) -> None:
        """Rename into place, over what is there."""
        self._sync()
        with disk_errors(self.path):
            os.replace(self.temporary, self.path)
        self._landed = True
        if self._durable:
            sync_folder(self.path)

    def commit_if_absent(self) -> bool:
        """Link into place unless something is there; False then."""
        self._sync()
        with disk_errors(self.path):
            try:
                os.link(self.temporary, self.path)
            except FileExistsError:
                return False
        if self._durable:
            sync_folder(self.path)
        return True

    def _sync(self) -> None:
        if self._durable:
            with disk_errors(self.path):
                os.fsync(self.fd)

    def _open(self) -> int:
        folder = os.path.dirname(self.path)
        while True:
            try:
                return os.open(self.temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            except FileNotFoundError:
                # Not there yet, or removed as empty by a delete between these two lines: then once more.
                os.makedirs(folder, exist_ok=True)


def remove_left(path: str) -> None:
    """Remove an unfinished file that nobody has written to for `LEFT_SECONDS`.

    A lock would say more, but a network file system that has none may take for ever to say so.
    """
    with contextlib.suppress(OSError):
        if time.time() - os.lstat(path).st_mtime > LEFT_SECONDS:
            os.unlink(path)


def sync_folder(path: str) -> None:
    """Wait until the name of the file at `path` is on the disk."""
    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def disk_errors(path: str) -> Iterator[None]:
    """Make a sentence of an error of the operating system about `path`."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if error.errno in _FULL:
            raise NoSpace(f"no space is left for {path} ({reason}): free some, or choose another folder") from error
        raise StorageError(f"{path} cannot be written ({reason}): check the folder and who may write there") from error
