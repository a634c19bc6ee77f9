"""The folder that the script writes to: what it holds at one moment, and news of changes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping

from . import inotify
from .inotify import FolderChange, Inotify
from .leases import has_writer, leases_work
from .state import FOLDER_PERMISSIONS, PATH_MAX, TICK_NS, FolderState, Stamp

_WIDTH = 60  # characters of a path that is too long, in a sentence
_CHANGES = inotify.CLOSE_WRITE | inotify.MOVED_FROM | inotify.MOVED_TO | inotify.CREATE | inotify.DELETE
_LISTEN_SECONDS = 1.0  # until every file that is being written has been heard of, where there are no leases


class WatchedFolder:
    """Watches a tree with inotify. For use by one thread, but for `is_as_it_was` and `is_still`."""

    def __init__(self, path: str, named: str = "") -> None:
        """`named` is the path by which the script knows it, where that is another. Raises OSError without inotify."""
        self.path = os.path.abspath(path)
        self._named = named or self.path
        self._reading = threading.Lock()
        self._news = 0
        self._whole_before: set[str] = set()
        self._inotify = Inotify(self.path)
        self._leases = leases_work(os.path.dirname(self.path))
        # Without leases it takes every write to know which files are being written.
        self._mask = (_CHANGES if self._leases else _CHANGES | inotify.MODIFY) | inotify.ONLYDIR | inotify.DONT_FOLLOW
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
        return self._inotify.fileno()

    def watch(self) -> None:
        """Hear of every change from now on. Raises OSError where a folder cannot be watched or read.

        What is there already may have been whole before somebody opened it, of which there is no news.
        """
        found = self._scan({})
        self._whole_before |= found.files.keys() | found.unsettled

    def state(self, known: Mapping[str, Stamp], seconds: float) -> FolderState | None:
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

    def files_at_rest(self, known: Mapping[str, Stamp], seconds: float) -> dict[str, Stamp]:
        """The files that nobody is writing and that have not changed for so long, whatever becomes of the others.

        Raises OSError as `state`.
        """
        before = time.time_ns() - int(seconds * 1e9)
        return {path: stamp for path, stamp in self._scan(known).files.items() if stamp.ctime_ns < before}

    def is_as_it_was(self, path: str, stamp: Stamp) -> bool:
        """Whether the bytes of a file are still those of a state."""
        try:
            return Stamp.from_status(os.lstat(os.path.join(self.path, path))) == stamp and not self.is_being_written(
                path
            )
        except FileNotFoundError:
            return False

    def is_still(self, state: FolderState) -> bool:
        """Whether the folder holds what it held in a state: nothing came or went, and no file of it was written."""
        for path, stamp in state.files.items():
            try:
                if Stamp.from_status(os.lstat(os.path.join(self.path, path))) != stamp:
                    return False
            except OSError:
                return False
        return not self.changed() and self._news == state.news

    def changed(self) -> bool:
        """Whether something has changed since the last call; the news are taken."""
        with self._reading:
            # Each is taken, also after the first that tells of a change.
            any_change = sum(map(self._note, self._inotify.events())) > 0
            self._news += any_change
        return any_change

    def wait(self, seconds: float) -> bool:
        """Whether something changes within so many seconds; the news are taken."""
        return self._inotify.wait(seconds) and self.changed()

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
        """Stop watching."""
        self._inotify.close()

    def _listen(self) -> None:
        """Without leases: no state counts before whoever writes slowly has been heard."""
        self._leases = False
        self._mask |= inotify.MODIFY
        self._complete_at = time.monotonic() + _LISTEN_SECONDS

    def _is_fresh(self, found: FolderState, known: Mapping[str, Stamp]) -> bool:
        newest = max((stamp.ctime_ns for path, stamp in found.files.items() if known.get(path) != stamp), default=0)
        return 0 <= time.time_ns() - newest < TICK_NS

    def _note(self, event: FolderChange) -> bool:
        """Take one piece of news; whether it can have changed the state."""
        watch, mask, name = event
        if mask & inotify.OVERFLOW:
            # Some news are lost, and what was written after it was moved may be among them.
            self._moved_here.clear()
            if not self._leases:  # nor is it known who has closed what he had written
                self._written.clear()
                self._complete_at = time.monotonic() + _LISTEN_SECONDS
            return True
        if mask & inotify.IGNORED:
            self._watched.pop(watch, None)
            return True
        if watch == self._above:
            return name == os.path.basename(self.path)
        folder = self._watched.get(watch)
        if folder is not None:
            self._note_in(os.path.join(folder, name), mask)
        # A write alone changes no state: the file is open, and open files are not part of it.
        return bool(mask & ~inotify.MODIFY)

    def _note_in(self, path: str, mask: int) -> None:
        if mask & (inotify.MOVED_TO | inotify.CLOSE_WRITE):
            self._whole_before.add(path)
        elif mask & (inotify.DELETE | inotify.MOVED_FROM):
            self._whole_before.discard(path)
        if mask & inotify.MOVED_TO:
            self._moved_here.add(path)
            self._closed_since -= {each for each in self._closed_since if f"{each}/".startswith(f"{path}/")}
        elif mask & inotify.CLOSE_WRITE:
            self._closed_since.add(path)
        if mask & inotify.MODIFY:
            self._written.add(path)
        elif mask & (inotify.CLOSE_WRITE | inotify.DELETE | inotify.MOVED_FROM):
            self._written.discard(path)

    def _scan(self, known: Mapping[str, Stamp]) -> FolderState:
        found = FolderState()
        # A script may remove the whole folder and make it anew.
        self._above = self._inotify.add(os.path.dirname(self.path), inotify.CREATE | inotify.MOVED_TO | inotify.ONLYDIR)
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
        self, entry: os.DirEntry[str], path: str, known: Mapping[str, Stamp], found: FolderState, waiting: list[str]
    ) -> None:
        if entry.is_symlink():
            found.links[path] = self._relative(path, os.readlink(entry.path))
        elif entry.is_dir(follow_symlinks=False):
            found.folders[path] = entry.stat(follow_symlinks=False).st_mode & FOLDER_PERMISSIONS
            waiting.append(path)
        elif entry.is_file(follow_symlinks=False):
            stamp = Stamp.from_status(entry.stat(follow_symlinks=False))
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
        watch = self._inotify.add(os.path.join(self.path, folder), self._mask)
        if watch >= 0:
            self._watched[watch] = folder
        return watch >= 0
