"""The agent: a process that uploads files, and watches folders for more until it is told to finish.

Told to finish, it uploads what is missing, answers why anything still is, and what no store can hold, and ends. A file
that cannot go up keeps back no other.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Collection

if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])

from estimator_container.agents.background import BackgroundCall
from estimator_container.agents.outputs import left_outputs
from estimator_container.agents.outputs.settings import OutputSettings
from estimator_container.agents.watching.agent import WatchingAgent
from estimator_container.agents.watching.folder import WatchedFolder
from estimator_container.agents.watching.state import Stamp
from estimator_container.contract.agent_events import OutputEvent, OutputsFailed, OutputsLeftOut, OutputsUploaded
from estimator_container.logs.events import EventLog
from estimator_container.logs.frames import FrameWriter
from estimator_container.runtime.folder_hold import FolderReplaced, HeldFolder
from estimator_container.storage import NotFound, SourceChanged, open_store
from estimator_container.storage.location import fault, parse

SETTLE_SECONDS = 0.05  # without news, before a folder is looked at
REST_SECONDS = 1.0
"""For which a file must not have changed where others in its folder always do; and between two looks there."""
HOLD_STILL_SECONDS = 0.5  # that a folder has for one look
STORE_SECONDS = 120.0  # that the store may be away before an upload has failed
AGAIN_SECONDS = 5.0  # between an upload that failed and the next
NAMES_OF_AN_EVENT = 64  # of up to 12 KiB each in JSON: what a frame of the log cannot hold would be told to nobody
_NAMED = 5  # files in a sentence
_WIDTH = 80  # characters of a name there


class OutputAgent(WatchingAgent):
    """Makes one upload after the other: its folders and its owner are heard meanwhile."""

    def __init__(self, owner: socket.socket) -> None:
        super().__init__(owner)
        self._events: EventLog | None = None
        self._folders: dict[str, WatchedFolder] = {}
        self._known: dict[str, dict[str, Stamp]] = {}
        self._left_outputs: dict[str, left_outputs.LeftOutputs] = {}
        self._left_out: dict[str, str] = {}
        self._failure = ""
        self._put_off: dict[str, set[str]] = {}
        """The files that have changed while they went up, by the prefixes of their folders: the others go first."""
        self._finishing = False

    def _begin(self, settings: str) -> None:
        self._settings = OutputSettings.from_json(settings)
        try:
            self._hold(self._settings.held)
        except FolderReplaced as reason:
            self._last_word(str(reason))
            return
        if self._settings.frames:
            with contextlib.suppress(OSError):  # where the script has removed the log, nobody is to be told
                self._events = EventLog(FrameWriter(self._settings.frames))
        self._left = dict(self._settings.files)
        self._root = parse(self._settings.uri).key_prefix
        for prefix, path in self._settings.folders.items():
            self._known[prefix] = {}
            with contextlib.suppress(OSError):  # where the kernel gives no more watches, the end is soon enough
                self._folders[prefix] = folder = WatchedFolder(path)
                self._loop.on_readable(folder.fileno(), lambda folder=folder: self._news(folder))  # type: ignore[misc]
        self.look_soon(0)

    def _finish(self, value: str) -> None:
        self._finishing = True
        self.look_soon(0)

    def _owner_gone(self) -> None:
        self._is_over = True

    def _news(self, folder: WatchedFolder) -> None:
        if folder.changed():
            self.look_after_news(SETTLE_SECONDS, REST_SECONDS)

    def _look(self) -> None:
        """Upload what there is; while something is under way, its end looks again."""
        if self.is_busy or self._is_over:
            return
        if self._settings.held is not None and self._is_job_removed():
            self._last_word(HeldFolder(*self._settings.held).replaced)
            return
        found = {prefix: self._new_files(prefix) for prefix in self._settings.folders}
        if self._put_off and not self._finishing:
            found = {prefix: _without(files, self._put_off.get(prefix, ())) for prefix, files in found.items()}
            self.look_soon(REST_SECONDS)
        self._put_off = {}
        faults = [self._leave_out(prefix, files) for prefix, files in found.items()]
        self._note_left_out({key: reason for each in faults for key, reason in each.items()})
        items = dict(self._left)
        for prefix, files in found.items():
            items.update({prefix + name: self._path(prefix, name) for name in files})
        if items:
            self.in_background(lambda: self._upload(items, found), lambda call: self._uploaded(items, found, call))
        elif self._finishing:
            self._last_word("")

    def _new_files(self, prefix: str) -> dict[str, Stamp]:
        """The files that are new or changed, and that nobody is writing; when the job has ended, nobody can be."""
        known, root = self._known[prefix], self._settings.folders[prefix]
        if self._finishing:
            self._left_outputs[prefix] = left = left_outputs.read(root, self._settings.named.get(prefix, root))
            files = left.files
        else:
            files = self._settled_files(prefix)
        return {name: stamp for name, stamp in files.items() if known.get(name) != stamp}

    def _settled_files(self, prefix: str) -> dict[str, Stamp]:
        """What a folder holds while the script runs that nobody is writing."""
        folder, known = self._folders.get(prefix), self._known[prefix]
        if folder is None:
            return {}
        try:
            state = folder.state(known, HOLD_STILL_SECONDS)
            folder.forget_moves()
            if state is not None:
                return state.files
            self.look_soon(REST_SECONDS)
            return folder.files_at_rest(known, REST_SECONDS)
        except OSError:  # something in it cannot be watched or read: the end is soon enough, and says what
            return {}

    def _leave_out(self, prefix: str, found: dict[str, Stamp]) -> dict[str, str]:
        """Take away the files that cannot go up, whatever the store says. Returns why, by their keys."""
        left = self._left_outputs.get(prefix)
        faults = dict(left.left_out) if left is not None else {}
        for name in list(found):
            reason = self._fault(prefix + name, self._path(prefix, name))
            if reason:
                faults[name] = reason
                del found[name]
        return {prefix + name: f"{_shown(prefix + name)} {reason}" for name, reason in faults.items()}

    def _fault(self, key: str, path: str) -> str:
        unreadable = os.path.exists(path) and not os.access(path, os.R_OK)
        return fault(key) or fault(self._root + key) or ("cannot be read" if unreadable else "")

    def _path(self, prefix: str, name: str) -> str:
        left = self._left_outputs.get(prefix)
        target = left.targets.get(name) if left is not None else None
        return target or os.path.join(self._settings.folders[prefix], name)

    def _note_left_out(self, faults: dict[str, str]) -> None:
        """Say once of each file that it stays here; at the end those count that are still there."""
        if faults.keys() - self._left_out.keys():
            self._emit(OutputsLeftOut(sorted(faults), _in_words(faults)))
        self._left_out = faults if self._finishing else {**self._left_out, **faults}

    def _upload(self, items: dict[str, str], found: dict[str, dict[str, Stamp]]) -> None:
        store = open_store(self._settings.uri, retry_seconds=STORE_SECONDS)
        store.upload_many((path, key) for key, path in items.items())
        for prefix, stamps in found.items():
            self._known[prefix].update(stamps)

    def _uploaded(self, items: dict[str, str], found: dict[str, dict[str, Stamp]], call: BackgroundCall[None]) -> None:
        try:
            call.result()
        except Exception as error:  # whatever it is, the owner is to hear of it
            if isinstance(error, (SourceChanged, NotFound)):
                self._put_off = {prefix: self._changed_since(prefix, files) for prefix, files in found.items()}
            self._upload_failed(error)
            return
        self._left = {}
        self._failure = ""
        names = sorted(items)
        for start in range(0, len(names), NAMES_OF_AN_EVENT):
            self._emit(OutputsUploaded(names[start : start + NAMES_OF_AN_EVENT]))
        self.look_soon(0)

    def _changed_since(self, prefix: str, files: dict[str, Stamp]) -> set[str]:
        folder, changed = self._folders.get(prefix), set()
        for name, stamp in files.items():
            with contextlib.suppress(OSError):
                if folder is not None and not folder.is_as_it_was(name, stamp):
                    changed.add(name)
        return changed

    def _upload_failed(self, error: Exception) -> None:
        if isinstance(error, SourceChanged) or (isinstance(error, NotFound) and not self._finishing):
            self.look_soon(SETTLE_SECONDS)
        elif self._finishing:
            self._last_word(str(error))
        else:
            if str(error) != self._failure:  # it goes on to be tried, and is said once
                self._failure = str(error)
                self._emit(OutputsFailed(self._failure))
            self.look_soon(AGAIN_SECONDS)

    def _emit(self, event: OutputEvent) -> None:
        if self._events is not None:
            self._events.emit(event)

    def _last_word(self, reason: str) -> None:
        left_out = _in_words(self._left_out)
        self._answer("finished", reason, f"not uploaded, and still in the job's folder: {left_out}" if left_out else "")
        self._is_over = True


def _without(files: dict[str, Stamp], names: Collection[str]) -> dict[str, Stamp]:
    return {name: stamp for name, stamp in files.items() if name not in names}


def _in_words(faults: dict[str, str]) -> str:
    more = len(faults) - _NAMED
    named = list(faults.values())[:_NAMED]
    return "; ".join([*named, f"and {more} more"] if more > 0 else named)


def _shown(key: str) -> str:
    return repr(key) if len(key) <= _WIDTH else f"{key[:_WIDTH]!r}…"


if __name__ == "__main__":
    OutputAgent(socket.socket(fileno=int(sys.argv[1]))).run()
    os._exit(0)  # an upload that is under way makes no object
