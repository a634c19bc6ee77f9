"""The folder that the script writes its checkpoints to: what it holds at one moment, and news of changes."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import struct
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# <sys/inotify.h>
_CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
_MODIFY, _OVERFLOW, _IGNORED = 0x2, 0x4000, 0x8000
_ONLYDIR, _DONT_FOLLOW = 0x01000000, 0x02000000
PERMISSIONS = 0o777
FOLDER_PERMISSIONS = 0o1777  # and that only its owner may remove a file
TICK_NS = 10_000_000  # a file written again within the kernel's clock tick could have the same time as before
PATH_MAX = 4096  # bytes with the NUL at the end, linux/limits.h
_WIDTH = 60  # characters of a longer one in a sentence
_EVENT = struct.Struct("iIII")
_CHANGES = _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_LISTEN_SECONDS = 1.0  # until every file that is being written has been heard of, where there are no leases


@dataclass(frozen=True)
class Stamp:
    """Tells a file from what it was: any write, and any other file in its place, changes it."""

    inode: int
    size: int
    mtime_ns: int
    mode: int
    """Permission bits; those that lend a program its owner's rights are not kept, and so are no news."""
    ctime_ns: int
    """When anything of it was changed. No program can set it, as `cp -p` and `tar` set the other time."""

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        mode = status.st_mode & PERMISSIONS
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, mode, status.st_ctime_ns)


@dataclass
class State:
    """What the folder held at one moment. Paths are relative to it."""

    files: dict[str, Stamp] = field(default_factory=dict)
    """Files that nobody was writing."""
    unsettled: set[str] = field(default_factory=set)
    """Files that somebody had open for writing."""
    reopened: set[str] = field(default_factory=set)
    """Those of them that had been whole before: a state without them was never there."""
    folders: dict[str, int] = field(default_factory=dict)
    """Path -> permission bits."""
    links: dict[str, str] = field(default_factory=dict)
    news: int = field(default=0, compare=False)
    """How often the folder had changed by then; see `Folder.is_still`."""

    def leave_out(self, paths: Iterable[str]) -> None:
        """Take files for such as somebody writes."""
        for path in paths:
            del self.files[path]
            self.unsettled.add(path)


class Folder:
    """Watches a tree with inotify. For use by one thread, but for `is_as_it_was` and `is_still`."""

    def __init__(self, path: str, named: str = "") -> None:
        """`named` is the path by which the script knows it, where that is another. Raises OSError without inotify."""
        self.path = os.path.abspath(path)
        self._named = named or self.path
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._reading = threading.Lock()
        self._news = 0
        self._whole_before: set[str] = set()
        self._fd = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._leases = _leases_work(os.path.dirname(self.path))
        # Without leases it takes every write to know which files are being written.
        self._mask = (_CHANGES if self._leases else _CHANGES | _MODIFY) | _ONLYDIR | _DONT_FOLLOW
        self._watched: dict[int, str] = {}
        self._above = -1
        self._complete_at = 0.0
        if not self._leases:
            self._listen()
        self._written: set[str] = set()
        self._moved_here: set[str] = set()
        self._closed_since: set[str] = set()

    def fileno(self) -> int:
        """Readable when something has changed."""
        return self._fd

    def watch(self) -> None:
        """Hear of every change from now on. Raises OSError where a folder cannot be watched or read."""
        self._scan({})

    def state(self, known: Mapping[str, Stamp], seconds: float) -> State | None:
        """What the folder holds, all of it at one moment; None when it did not hold still for so long.

        A file that is as it is in `known` was settled then: whoever has opened it since has not written yet. A file
        written within the last clock tick does not count as holding still. Raises OSError where a folder cannot be
        watched or read.
        """
        deadline = time.monotonic() + seconds
        self.changed()
        while True:
            found = self._scan(known)
            if self._is_fresh(found, known):
                self.wait(TICK_NS / 1e9)
            elif time.monotonic() < self._complete_at:
                for folder in tuple(self._watched.values()):
                    self._watch(folder)
                self.wait(max(0.0, min(self._complete_at, deadline) - time.monotonic()))
            elif not self.changed():
                found.news = self._news
                return found
            if time.monotonic() > deadline:
                return None

    def is_as_it_was(self, path: str, stamp: Stamp) -> bool:
        """Whether the bytes of a file are still those of a state."""
        try:
            return Stamp.of(os.lstat(os.path.join(self.path, path))) == stamp and not self.is_being_written(path)
        except FileNotFoundError:
            return False

    def is_still(self, state: State) -> bool:
        """Whether the folder holds what it held in a state: nothing came or went, and no file of it was written."""
        for path, stamp in state.files.items():
            try:
                if Stamp.of(os.lstat(os.path.join(self.path, path))) != stamp:
                    return False
            except OSError:
                return False
        return not self.changed() and self._news == state.news

    def changed(self) -> bool:
        """Whether something has changed since the last call; the news are taken."""
        with self._reading:
            any_change = self._read_news()
            self._news += any_change
        return any_change

    def _read_news(self) -> bool:
        any_change = False
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                return any_change
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                name = os.fsdecode(data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0"))
                at += _EVENT.size + length
                any_change |= self._note(watch, mask, name)

    def wait(self, seconds: float) -> bool:
        """Whether something changes within so many seconds; the news are taken."""
        return bool(select.select([self._fd], [], [], seconds)[0]) and self.changed()

    def was_moved_here(self, path: str, stamp: Stamp) -> bool:
        """Whether the file, or a folder that it is in, got its name when it was whole, and it was not written since."""
        if path in self._closed_since:
            return False
        if path in self._moved_here:
            return True
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return any(self._moved_after(folder, stamp) for folder in above if folder in self._moved_here)

    def _moved_after(self, folder: str, stamp: Stamp) -> bool:
        """A folder that has just come is not watched yet: what is written in it shows only in the times."""
        try:
            return os.lstat(os.path.join(self.path, folder)).st_ctime_ns >= stamp.ctime_ns
        except FileNotFoundError:
            return False

    def forget_moves(self) -> None:
        """What was moved here by now need not be remembered."""
        self._moved_here.clear()
        self._closed_since.clear()

    def is_being_written(self, path: str) -> bool:
        """Whether somebody has the file open for writing, or mapped: then its bytes mean nothing yet."""
        if self._leases:
            try:
                return has_writer(os.path.join(self.path, path))
            except PermissionError:
                # Another user's file, as root leaves in a container: from now on every write is listened to.
                self._listen()
        return path in self._written

    def close(self) -> None:
        os.close(self._fd)

    def _listen(self) -> None:
        """Without leases: no state counts before whoever writes slowly has been heard."""
        self._leases = False
        self._mask |= _MODIFY
        self._complete_at = time.monotonic() + _LISTEN_SECONDS

    def _is_fresh(self, found: State, known: Mapping[str, Stamp]) -> bool:
        newest = max((stamp.ctime_ns for path, stamp in found.files.items() if known.get(path) != stamp), default=0)
        return 0 <= time.time_ns() - newest < TICK_NS

    def _note(self, watch: int, mask: int, name: str) -> bool:
        """Take one piece of news; whether it can have changed the state."""
        if mask & _OVERFLOW:
            # Some news are lost, and what was written after it was moved may be among them.
            self._moved_here.clear()
            return True
        if mask & _IGNORED:
            self._watched.pop(watch, None)
            return True
        if watch == self._above:
            return name == os.path.basename(self.path)
        folder = self._watched.get(watch)
        if folder is not None:
            self._note_in(os.path.join(folder, name), mask)
        # A write alone changes no state: the file is open, and open files are not part of it.
        return bool(mask & ~_MODIFY)

    def _note_in(self, path: str, mask: int) -> None:
        if mask & (_MOVED_TO | _CLOSE_WRITE):
            self._whole_before.add(path)
        elif mask & (_DELETE | _MOVED_FROM):
            self._whole_before.discard(path)
        if mask & _MOVED_TO:
            self._moved_here.add(path)
            self._closed_since -= {each for each in self._closed_since if f"{each}/".startswith(f"{path}/")}
        elif mask & _CLOSE_WRITE:
            self._closed_since.add(path)
        if mask & _MODIFY:
            self._written.add(path)
        elif mask & (_CLOSE_WRITE | _DELETE | _MOVED_FROM):
            self._written.discard(path)

    def _scan(self, known: Mapping[str, Stamp]) -> State:
        found = State()
        # A script may remove the whole folder and make it anew.
        self._above = self._add_watch(os.path.dirname(self.path), _CREATE | _MOVED_TO | _ONLYDIR)
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            # Watched before it is listed: what comes later is news.
            if not self._watch(folder):
                continue
            try:
                entries = list(os.scandir(os.path.join(self.path, folder)))
            except (FileNotFoundError, NotADirectoryError):
                continue  # there is an event about that
            for entry in entries:
                path = os.path.join(folder, entry.name)
                if len(os.fsencode(entry.path)) >= PATH_MAX:
                    raise OSError(f"{path[:_WIDTH]!r}… in {self.path} is too long for a path: rename or remove it")
                try:
                    self._look_at(entry, path, known, found, waiting)
                except FileNotFoundError:
                    continue
        return found

    def _look_at(
        self, entry: os.DirEntry[str], path: str, known: Mapping[str, Stamp], found: State, waiting: list[str]
    ) -> None:
        if entry.is_symlink():
            found.links[path] = self._relative(path, os.readlink(entry.path))
        elif entry.is_dir(follow_symlinks=False):
            found.folders[path] = entry.stat(follow_symlinks=False).st_mode & FOLDER_PERMISSIONS
            waiting.append(path)
        elif entry.is_file(follow_symlinks=False):
            stamp = Stamp.of(entry.stat(follow_symlinks=False))
            if known.get(path) != stamp and self.is_being_written(path):
                found.unsettled.add(path)
                if path in self._whole_before:
                    found.reopened.add(path)
            else:
                found.files[path] = stamp

    def _relative(self, path: str, target: str) -> str:
        """A link into the folder, as it means the same wherever the folder is put back."""
        for root in (self._named, self.path):
            if target.startswith(f"{root}/"):
                return os.path.relpath(target, os.path.dirname(os.path.join(root, path)))
        return target

    def _watch(self, folder: str) -> bool:
        watch = self._add_watch(os.path.join(self.path, folder), self._mask)
        if watch >= 0:
            self._watched[watch] = folder
        return watch >= 0

    def _add_watch(self, path: str, mask: int) -> int:
        """The number of the watch; -1 where there is no such folder."""
        watch = int(self._libc.inotify_add_watch(self._fd, os.fsencode(path), mask))
        if watch < 0 and ctypes.get_errno() in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return -1
        return self._checked(watch)

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            what = f"cannot watch {self.path}: {os.strerror(number)}"
            if number == errno.ENOSPC:
                what += "; raise fs.inotify.max_user_watches"
            raise OSError(number, what)
        return result


def has_writer(path: str) -> bool:
    """A read lease is granted only while nobody has the file open for writing (fcntl(2), F_SETLEASE).

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


def _leases_work(folder: str) -> bool:
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
