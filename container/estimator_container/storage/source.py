"""The file that an upload reads, which must not change under it."""

from __future__ import annotations

import os

from .errors import NotFound, SourceChanged, StorageError


class UploadSource:
    """`with UploadSource(path) as source`: reads by offset, and can tell whether the file is still the same."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NotFound(f"{path} does not exist, so it cannot be uploaded: check the path") from None
        except OSError as error:
            raise StorageError(f"{path} cannot be read ({error.strerror}): check who may read it") from error
        self._before = os.fstat(self._fd)
        self.size = self._before.st_size
        """In bytes, when it was opened."""

    def __enter__(self) -> UploadSource:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def read(self, offset: int, size: int) -> memoryview:
        """Exactly `size` bytes, in memory of their own. Raises as `read_into`."""
        data = memoryview(bytearray(size))
        self.read_into(data, offset)
        return data

    def read_into(self, into: memoryview, offset: int) -> None:
        """Fill the buffer. Raises SourceChanged where the file has become too short for that."""
        try:
            while into:
                come = os.preadv(self._fd, [into], offset)
                if not come:
                    raise self._changed()
                into, offset = into[come:], offset + come
        except OSError as error:
            raise StorageError(f"{self._path} cannot be read ({error.strerror}): check the disk") from error

    def check(self) -> None:
        """Raises SourceChanged unless the file is, and the path still names, what was opened."""
        try:
            now = (os.fstat(self._fd), os.stat(self._path))
        except OSError:
            raise self._changed() from None
        if any(_identity(each) != _identity(self._before) for each in now):
            raise self._changed()

    def _changed(self) -> SourceChanged:
        return SourceChanged(f"{self._path} changed during the upload, so nothing was published: upload it again")


class Buffers:
    """Memory of one size that is used again when nobody has it any more; fresh memory is filled with zeros first."""

    def __init__(self, size: int) -> None:
        """`size` in bytes."""
        self._size = size
        self._all: list[bytearray] = []

    def take(self, size: int) -> memoryview:
        """At most as many bytes as each has; they are given back when nobody has a view of them any more."""
        buffer = next(filter(_is_free, self._all), None)
        if buffer is None:
            buffer = bytearray(self._size)
            self._all.append(buffer)
        return memoryview(buffer)[:size]


def _is_free(buffer: bytearray) -> bool:
    try:
        buffer.append(buffer.pop())  # its size cannot be changed while anybody has a view of it
    except BufferError:
        return False
    return True


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
