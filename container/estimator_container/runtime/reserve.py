"""Room on a disk that is kept for the last word: when the disk is full, it must still be said how the job ended."""

from __future__ import annotations

import contextlib
import os

from . import private_folder

SIZE = 1 << 16  # bytes; a verdict with a traceback fits many times


def keep(path: str, size: int = SIZE) -> None:
    """Occupy that many bytes of disk space. Raises OSError if there is not enough."""
    # glibc reads what is there of an earlier attempt, on a file system that cannot allocate: NFS 3, many by FUSE.
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(fd, 0, size)
    finally:
        os.close(fd)


def release(path: str) -> None:
    """Free the space for what is written next."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def become(path: str, target: str, data: bytes) -> None:
    """Make the room a file of this content, under the name `target`. Raises OSError.

    Between giving the room back and writing, another host on the same disk could take it.
    """
    private_folder.make_below(os.path.dirname(path))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.truncate()
    os.replace(path, target)
