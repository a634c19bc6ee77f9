"""The store at `file:///folder`: a plain tree of files, with the meaning that the port gives to objects.

A write is a rename, so a reader sees one version or the other; a write where nothing may be is a link.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence

from .errors import Conflict, NotFound, SourceChanged, StorageError
from .landing import Landing, disk_errors, remove_left, sync_folder
from .location import check_key, check_path, is_own, is_unfinished
from .parallel import in_threads
from .port import Digest, Object, Progress, Store
from .source import UploadSource

_CHUNK = 1 << 18  # bytes; they are hashed and written while a processor has them near
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


class LocalStore(Store):
    """See the module."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.uri = f"file://{root}"

    def list(self, prefix: str = "") -> Iterator[Object]:
        folder, slash, _ = prefix.rpartition("/")
        if slash:
            check_key(folder)
        yield from self._walk(os.path.join(self.root, folder), folder + slash, prefix, frozenset())

    def _walk(self, folder: str, above: str, prefix: str, ancestors: frozenset[tuple[int, int]]) -> Iterator[Object]:
        """The objects below a folder, whose keys start with `above`; `ancestors` end a loop of symbolic links."""
        try:
            here = os.stat(folder)
            with os.scandir(folder) as entries:
                # A folder sorts as what it stands for, keys that go on with a slash.
                names = sorted(
                    (entry.name + "/" if _is_folder(entry) else entry.name, entry.path)
                    for entry in entries
                    if not is_own(entry.name)
                )
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise _refused(f"{folder} cannot be listed", error) from error
        identity = (here.st_dev, here.st_ino)
        if identity in ancestors:
            return
        for name, path in names:
            key = above + name
            if name.endswith("/"):
                if key.startswith(prefix) or prefix.startswith(key):
                    yield from self._walk(path, key, prefix, ancestors | {identity})
            elif key.startswith(prefix):
                found = _object(key, path)
                if found:
                    yield found
                elif os.path.islink(path) and not os.path.exists(path):
                    # What somebody keeps under that name would be missing, and nobody would know.
                    raise StorageError(
                        f"{path} is a link to {os.readlink(path)}, which does not exist: restore its target, "
                        "or remove the link"
                    )

    def head(self, key: str) -> Object | None:
        return _object(key, self._path_of_what_is_there(key))

    def read(self, key: str, range: tuple[int, int] | None = None) -> bytes:
        with self._opened(key) as fd:
            size = os.fstat(fd).st_size
            start, end = range or (0, size)
            chunks = []
            while start < end:
                chunk = os.pread(fd, min(end - start, 1 << 30), start)
                if not chunk:
                    break
                chunks.append(chunk)
                start += len(chunk)
            return b"".join(chunks)

    def write(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        with Landing(self._path(key), durable=True) as landing:
            landing.write(data)
            # The kernel's clock for files ticks slowly: two writes of the same size must not look alike.
            now = time.time_ns()
            os.utime(landing.fd, ns=(now, now))
            etag = _etag(os.fstat(landing.fd))
            if not if_absent:
                landing.commit()
            elif not landing.commit_if_absent():
                raise Conflict(f"{self._name(key)} already exists, so nothing was written")
        return etag

    def download(self, key: str | Object, path: str) -> Digest:
        name = key.key if isinstance(key, Object) else key
        with self._opened(name) as fd, Landing(path) as landing:
            status = os.fstat(fd)
            if isinstance(key, Object) and key.etag not in ("", _etag(status)):
                raise SourceChanged(f"{self._name(name)} has been overwritten since it was listed: list it again")
            landing.set_size(status.st_size)
            hasher, offset = hashlib.sha256(), 0
            while True:
                chunk = os.pread(fd, _CHUNK, offset)
                if not chunk:
                    break
                hasher.update(chunk)
                landing.write(chunk, offset)
                offset += len(chunk)
            # Only programs that write in place can change a file that is open; the port itself never does.
            if _etag(os.fstat(fd)) != _etag(status):
                raise SourceChanged(f"{self._name(name)} changed while it was being read: try again")
            landing.commit()
        return Digest(offset, hasher.hexdigest())

    def upload(self, path: str, key: str) -> Digest:
        with UploadSource(path) as opened, Landing(self._path(key), durable=True) as landing:
            landing.set_size(opened.size)
            hasher = hashlib.sha256()
            buffer = memoryview(bytearray(min(_CHUNK, opened.size)))
            for offset in range(0, opened.size, _CHUNK):
                chunk = buffer[: opened.size - offset]
                opened.read_into(chunk, offset)
                hasher.update(chunk)
                landing.write(chunk, offset)
            opened.check()
            landing.commit()
            return Digest(opened.size, hasher.hexdigest())

    def download_many(
        self, items: Iterable[tuple[str | Object, str]], *, progress: Progress | None = None
    ) -> Sequence[Digest]:
        return in_threads(lambda item: self.download(*item), items, progress)

    def upload_many(self, items: Iterable[tuple[str, str]]) -> Sequence[Digest]:
        return in_threads(lambda item: self.upload(*item), items, None)

    def delete(self, keys: Iterable[str]) -> None:
        for path in map(self._path, keys):
            with disk_errors(path), contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                os.unlink(path)
                sync_folder(path)
            self._prune(os.path.dirname(path))

    def remove_unfinished(self, folder: str) -> None:
        for above, _, names in os.walk(os.path.join(self.root, folder)):
            left = list(filter(is_unfinished, names))
            for name in left:
                remove_left(os.path.join(above, name))
            if left:
                self._prune(above)

    def _prune(self, folder: str) -> None:
        """Remove folders that are left empty: an object store has none."""
        while folder.startswith(self.root + "/"):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                pass
            except OSError:
                return
            folder = os.path.dirname(folder)

    def _path(self, key: str) -> str:
        return os.path.join(self.root, check_key(key))

    def _path_of_what_is_there(self, key: str) -> str:
        """Whatever somebody else's program has called a file here, it can be read."""
        return os.path.join(self.root, check_path(key))

    def _name(self, key: str) -> str:
        return f"{self.uri}/{key}"

    @contextlib.contextmanager
    def _opened(self, key: str) -> Iterator[int]:
        try:
            # A FIFO would have it wait for somebody who writes.
            fd = os.open(self._path_of_what_is_there(key), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in _ABSENT:
                raise self._missing(key) from None
            raise _refused(f"{self._name(key)} cannot be read", error) from error
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise self._missing(key)
            yield fd
        finally:
            os.close(fd)

    def _missing(self, key: str) -> NotFound:
        return NotFound(f"{self._name(key)} does not exist: check the key")


def _object(key: str, path: str) -> Object | None:
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise _refused(f"{path} cannot be accessed", error, "its folder") from error
    return Object(key, status.st_size, _etag(status)) if stat.S_ISREG(status.st_mode) else None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _etag(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


def _refused(what: str, error: OSError, barrier: str = "it") -> StorageError:
    return StorageError(f"{what} ({(error.strerror or '').lower()}): check who may read {barrier}")
