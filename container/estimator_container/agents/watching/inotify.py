"""The kernel's news of changes in folders, inotify(7), which Python's library does not have."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from collections.abc import Iterator
from typing import NamedTuple

# <sys/inotify.h>
MODIFY, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x8, 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED = 0x4000, 0x8000
ONLYDIR, DONT_FOLLOW, MASK_ADD = 0x01000000, 0x02000000, 0x20000000
_EVENT = struct.Struct("iIII")


class FolderChange(NamedTuple):
    """One piece of news."""

    watch: int
    mask: int
    name: str
    """Of what has changed, in the folder that is watched."""


class Inotify:
    """Watches folders, each by itself."""

    def __init__(self, subject: str) -> None:
        """`subject` is what errors name. Raises OSError where the kernel gives no more."""
        self._subject = subject
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def fileno(self) -> int:
        """Readable when something has changed."""
        return self._fd

    def add(self, path: str, mask: int) -> int:
        """Watch a folder, and return the watch's number; -1 if there is no such folder. Raises OSError."""
        watch = int(self._libc.inotify_add_watch(self._fd, os.fsencode(path), mask))
        if watch < 0 and ctypes.get_errno() in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return -1
        return self._checked(watch)

    def events(self) -> Iterator[FolderChange]:
        """Take the events that have arrived."""
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                yield FolderChange(watch, mask, os.fsdecode(data[at - length : at].rstrip(b"\0")))

    def wait(self, seconds: float) -> bool:
        """Wait for events; returns whether any arrive within `seconds`."""
        return bool(select.select([self._fd], [], [], seconds)[0])

    def close(self) -> None:
        """Close the descriptor, which ends all watches."""
        os.close(self._fd)

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            what = f"cannot watch {self._subject}: {os.strerror(number)}"
            if number == errno.ENOSPC:
                what += "; raise fs.inotify.max_user_watches"
            raise OSError(number, what)
        return result
