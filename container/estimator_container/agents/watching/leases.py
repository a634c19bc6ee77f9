"""Whether somebody has a file open for writing, as the kernel's leases tell it (fcntl(2), F_SETLEASE)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os


def has_writer(path: str) -> bool:
    """A read lease is granted only while nobody has the file open for writing.

    For the moment that it is held the process should ignore SIGIO, which tells that somebody wants to write.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return True
        raise
    finally:
        os.close(fd)
    return False


def leases_work(folder: str) -> bool:
    """Whether the file system has leases, and tells a file that is being written from one that is not."""
    path = os.path.join(folder, f".lease-{os.getpid()}")
    try:
        with open(path, "xb"):
            if not has_writer(path):
                return False
        return not has_writer(path)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
