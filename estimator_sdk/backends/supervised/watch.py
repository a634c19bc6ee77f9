"""Wait for changes of files, and for the end of a process, without polling."""

from __future__ import annotations

import ctypes
import os
import select
from contextlib import suppress
from pathlib import Path

from estimator_container.agents.watching.inotify import CREATE, DELETE, MASK_ADD, MODIFY, MOVED_FROM, MOVED_TO
from estimator_container.runtime.loop import LONGEST_WAIT

_POLL_SECONDS = 0.05  # where the kernel gives no inotify instance
_LOOK_SECONDS = 1.0  # where the kernel, or the build of Python, tells nobody of a process that ends


class Watch:
    """Wakes when a watched file grows, something appears in a watched folder, or a process ends."""

    def __init__(self, pid: int | None = None, longest: float = LONGEST_WAIT) -> None:
        """`longest` is the most seconds that `wait` lets pass, for files that another machine may change."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._pidfd = _open_pidfd(pid)
        self._longest = longest if pid is None or self._pidfd >= 0 else min(longest, _LOOK_SECONDS)
        self._poll = select.poll()
        for fd in (self._inotify, self._pidfd):
            if fd >= 0:
                self._poll.register(fd, select.POLLIN)

    def add(self, path: Path) -> None:
        """Watch a file or a folder too; one that does not exist yet is left out."""
        self._add(path, MODIFY | MOVED_TO | CREATE)

    def add_removals(self, folder: Path) -> None:
        """Watch for what is removed from a folder, or moved out of it."""
        self._add(folder, DELETE | MOVED_FROM)

    def _add(self, path: Path, mask: int) -> None:
        if self._inotify >= 0:
            self._libc.inotify_add_watch(self._inotify, os.fsencode(path), mask | MASK_ADD)

    def fileno(self) -> int:
        """Readable after a change; negative where the kernel gives no inotify instance."""
        return int(self._inotify)

    def wait(self, seconds: float | None = None) -> None:
        """Return after a change since the last call, after the process has ended, or after `seconds`, at most a day.

        It may return for nothing: who waits looks again.
        """
        longest = _POLL_SECONDS if self._inotify < 0 else self._longest
        ready = self._poll.poll(1000 * (longest if seconds is None else min(max(0, seconds), longest)))
        for fd, _ in ready:
            if fd == self._inotify:
                self.clear()
            else:
                # It stays readable: the caller has been told once.
                self._poll.unregister(fd)

    def clear(self) -> None:
        """Take the changes that there are."""
        with suppress(BlockingIOError):
            os.read(self._inotify, 1 << 16)

    def close(self) -> None:
        """Stop watching, and close the descriptors; may be called more than once."""
        for fd in (self._inotify, self._pidfd):
            if fd >= 0:
                os.close(fd)
        self._inotify = self._pidfd = -1


def _open_pidfd(pid: int | None) -> int:
    if pid is None:
        return -1
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # a Python or a kernel without it
        return -1
