"""The leases on one machine: a file for each job that uses its slots, or waits for some, whoever's the job is.

A file counts as long as a process holds its lock. The kernel takes that away with the process, so that nothing which a
killed job or an earlier start of the machine has left is believed to be alive.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ....supervised.watch import Watch
from .folder_lock import lock

FOLDER = Path("/tmp/estimator-leases")
"""Of all users of a machine."""
_LOCK_SECONDS = 2.0
"""That another process may look at the leases; it is a moment."""
_MOST_BYTES = 4096
_NO_LEASE = (ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""What is raised for a text that is none; any user of the machine may write one."""


class Ticket(NamedTuple):
    """Which of the jobs that wait is first: the same on all machines."""

    since: float
    """Seconds since 1970."""
    job: str
    """Its name, and what tells it from others of that name."""


class _Told(NamedTuple):
    """What a file says."""

    ticket: Ticket
    slots: int
    is_held: bool
    name: str
    """The job's."""


class Lease:
    """The lease of one job on this machine, which is held or waits; for as long as this process lives."""

    def __init__(self, name: str, ticket: Ticket, slots: int, limit: int, folder: Path = FOLDER) -> None:
        """For a job that needs so many of `limit` slots; without a limit, which is 0, there is always room.

        Raises OSError.
        """
        self.is_held = False
        self._name, self._ticket, self._slots, self._limit = name, ticket, slots, limit
        self._folder = folder
        _make(folder)
        self._path = folder / f"{os.geteuid()}-{os.urandom(8).hex()}"
        self._watch = Watch()
        self._watch.add_removals(folder)
        self._fd = -1
        try:
            with _locked(folder):
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                os.fchmod(self._fd, 0o644)  # for other users to count it
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._write()
        except OSError:
            self.close()
            raise

    def fileno(self) -> int:
        """Readable after a lease was given back by a job that ended by itself."""
        return self._watch.fileno()

    def clear(self) -> None:
        """Take the changes that there are."""
        self._watch.clear()

    def who_is_before(self) -> str:
        """The jobs that use the slots, or waited for them earlier, in words; empty where there is room. Raises OSError.

        A job that is alone has room, whatever the limit is.
        """
        with _locked(self._folder):
            return self._who_is_before()

    def take(self) -> str:
        """Hold the lease from now on if there is room; returns as `who_is_before`. Raises OSError."""
        with _locked(self._folder):
            words = "" if self.is_held else self._who_is_before()
            if not words:
                self._write(is_held=True)
                self.is_held = True
            return words

    def give_back(self) -> None:
        """Wait again, at the same place. Raises OSError."""
        with _locked(self._folder):
            self._write()
            self.is_held = False

    def close(self) -> None:
        """Need it no more; may be called more than once."""
        self._watch.close()
        if self._fd < 0:
            return
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._fd)
        self._fd = -1

    def _write(self, is_held: bool = False) -> None:
        """Over what is there, so that a full disk takes nothing of it away."""
        told = {"job": self._name, "ticket": self._ticket, "slots": self._slots, "is_held": is_held}
        data = json.dumps(told).encode()
        if os.pwrite(self._fd, data, 0) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        os.ftruncate(self._fd, len(data))

    def _who_is_before(self) -> str:
        before = [each for each in self._others() if each.is_held or each.ticket < self._ticket]
        taken = sum(each.slots for each in before)
        if not self._limit or not before or taken + self._slots <= self._limit:
            return ""
        jobs = ", ".join(f"{each.name} {'has' if each.is_held else 'waits for'} {each.slots}" for each in before)
        return f"of {self._limit} slots {jobs}, and {self._name} needs {self._slots}"

    def _others(self) -> Iterator[_Told]:
        """Those of other jobs that are alive, in the order of their tickets; what is left of this user's is removed."""
        found = []
        for path in self._folder.iterdir():
            if path == self._path:
                continue
            with contextlib.suppress(OSError, *_NO_LEASE):
                told = _read(path)
                if told is not None and told.ticket.job != self._ticket.job:
                    found.append(told)
        return iter(sorted(found, key=lambda each: each.ticket))


def _read(path: Path) -> _Told | None:
    """What a file says; None where nobody holds it. Raises OSError, and others for what is not a lease."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            told = json.loads(os.read(fd, _MOST_BYTES))
            since, job = told["ticket"]
            slots, name = max(0, int(told["slots"])), ascii(str(told["job"]))[1:-1]
            return _Told(Ticket(float(since), str(job)), slots, told["is_held"] is True, name)
        if os.fstat(fd).st_uid == os.geteuid():
            path.unlink()
        return None
    finally:
        os.close(fd)


def _make(folder: Path) -> None:
    mask = os.umask(0)
    try:
        folder.mkdir(0o1777)  # where nobody removes what is another's
    except FileExistsError:
        pass
    finally:
        os.umask(mask)
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise NotADirectoryError(f"{folder}, for the leases of jobs on this machine, is not a folder: remove it")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Nobody else looks at the leases meanwhile. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            lock(fd, _LOCK_SECONDS)
        except TimeoutError:
            raise TimeoutError(f"{folder} has been locked by another process for long") from None
        yield
    finally:
        os.close(fd)
