"""Shards of a store in a folder of this machine, which holds no more than it is allowed.

All processes of a rank share it: the first that needs a shard brings it, and one that somebody has open stays. A file
that is being brought, or read, is locked (`flock(2)`), so what a process that was killed has left counts as free.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from typing import BinaryIO

from estimator_container.storage import Object, Store, open_store
from estimator_container.storage.location import parse

from ..errors import DataError
from .fetch import fetch_elsewhere

_PREFIX = "estimator-data-"
_OWNER = ".owner"
_MAKING_SECONDS = 3600.0  # far more than making a folder takes
_UNREAD_SINCE = 1 << 33  # seconds since 1970: the time of a file that nobody has opened yet


class DiskCache:
    """See the module. It may be sent to another process of this machine, which then shares the folder."""

    def __init__(self, uri: str, limit: int, folder: str | None = None) -> None:
        """At most `limit` bytes, or the shards that are open at once where those are more.

        Without a `folder` it makes one of its own, which ends with this process, or by the next cache if it is killed.
        Raises DataError for a folder that cannot be made.
        """
        self._uri = uri
        self._limit = limit
        self._pid = os.getpid()
        self._store: Store | None = None
        if folder is None:
            _remove_left_over()
            folder = tempfile.mkdtemp(prefix=_prefix())
            draft = os.path.join(folder, f"{_OWNER}.draft")
            owner = os.open(draft, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(owner, fcntl.LOCK_EX)
            os.rename(draft, os.path.join(folder, _OWNER))  # which is locked from the moment that it is there
            weakref.finalize(self, _remove, folder, owner, os.getpid())
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise DataError(f"cache_folder is {folder!r}, which cannot be made: {error.strerror}") from None
        self.folder = folder

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_store": None}

    def open(self, shard: Object) -> BinaryIO:
        """The shard as a file, which stays as long as it is open. Raises StorageError."""
        path = self._path(shard)
        while True:
            with contextlib.suppress(FileNotFoundError):
                file = open(path, "rb")  # noqa: SIM115 - for whoever asked
                fcntl.flock(file, fcntl.LOCK_SH)
                if os.fstat(file.fileno()).st_nlink:
                    os.utime(file.fileno())
                    return file
                file.close()
                continue
            self._bring(shard, must=True)

    def bring(self, shard: Object) -> bool:
        """Have a shard ready before somebody opens it; False where there is no room for more than is in use."""
        return os.path.exists(self._path(shard)) or self._bring(shard, must=False)

    def _path(self, shard: Object) -> str:
        return os.path.join(
            self.folder, hashlib.sha256(f"{shard.key} {shard.etag}".encode("utf-8", "surrogateescape")).hexdigest()
        )

    def _bring(self, shard: Object, must: bool) -> bool:
        path = self._path(shard)
        with _locked(f"{path}.coming") as coming:
            if os.path.exists(path):
                return True
            with _locked(os.path.join(self.folder, ".room")):
                if not self._make_room(shard.size, must) and not must:
                    return False
                os.ftruncate(coming, shard.size)  # what is on its way counts, too
            draft = f"{path}.draft"
            self._download(shard, draft)
            if not must:
                os.utime(draft, (_UNREAD_SINCE, _UNREAD_SINCE))
            os.rename(draft, path)
            return True

    def _make_room(self, size: int, must: bool) -> bool:
        """Remove what nobody uses, first what was opened longest ago, until so many bytes more are allowed.

        What nobody has opened yet is removed only for what somebody waits for.
        """
        found = sorted(_files(self.folder))
        total = sum(size for _, size, _ in found)
        for time_of, size_of, path in found:
            if total + size <= self._limit:
                return True
            if (must or time_of < _UNREAD_SINCE) and _remove_unused(path):
                total -= size_of
        return total + size <= self._limit

    def _download(self, shard: Object, path: str) -> None:
        if os.getpid() != self._pid and not parse(self._uri).is_folder:
            fetch_elsewhere(self._uri, shard, path)
            return
        if self._store is None:
            self._store = open_store(self._uri)
        self._store.download(shard, path)


def _files(folder: str) -> Iterator[tuple[float, int, str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name.endswith(".draft"):
                continue  # what is not whole yet counts by the file that says that it is coming
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat()
                yield status.st_mtime, status.st_size, entry.path


def _remove_unused(path: str) -> bool:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
        return True
    return False


@contextlib.contextmanager
def _locked(path: str) -> Iterator[int]:
    """Have a file to oneself, which holds nothing afterwards."""
    while True:
        fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            break
        os.close(fd)
    try:
        yield fd
    finally:
        os.ftruncate(fd, 0)
        os.close(fd)


def _prefix() -> str:
    return f"{_PREFIX}{os.getuid()}-"


def _remove_left_over() -> None:
    """The folders of processes that were killed: nobody holds the lock of their owner. Others may do the same now."""
    for entry in os.scandir(tempfile.gettempdir()):
        if entry.name.startswith(_prefix()):
            with contextlib.suppress(OSError):
                _remove_if_left(entry.path)


def _remove_if_left(folder: str) -> None:
    try:
        with open(os.path.join(folder, _OWNER), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except FileNotFoundError:  # it is being made, or its process was killed while it was
        if os.stat(folder).st_mtime < time.time() - _MAKING_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: str, owner: int, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)
