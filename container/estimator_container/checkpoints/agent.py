"""The agent: a process that puts a folder back from a store, then watches it and publishes what settles there.

    python -I -S agent.py FD SEARCH_PATH

FD is its end of a socket to its owner, who sends the settings first. The agent answers what it restored, or why it
could not. Told to finish, it publishes what there is, answers, and ends. When the owner is gone, it finishes by itself.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])

from estimator_container.checkpoints.folder import Folder, Stamp, State
from estimator_container.checkpoints.publisher import Overtaken, Published, Publisher
from estimator_container.checkpoints.restore import NOTHING, Restored, claim, copy, newest_whole_manifest, restore
from estimator_container.checkpoints.vouching import is_vouched_for
from estimator_container.events import EventLog
from estimator_container.frames import FrameWriter
from estimator_container.links import Link
from estimator_container.loop import Loop, Timer
from estimator_container.storage import SourceChanged, StorageError, Store, open_store

SETTLE_SECONDS = 0.005  # without news, before a state is looked at: files of one checkpoint come together
HOLD_STILL_SECONDS = 1.0  # that a folder has for one look; after that the agent hears its owner, and looks again
STORE_SECONDS = 60.0  # that a call to the store is tried before its failure is reported
AGAIN_SECONDS = 1.0  # between a publication that failed and the next
REPORT_SECONDS = 5.0  # between two reports of what is not in the store yet
ALONE_SECONDS = 10.0  # to finish in when the owner is gone


@dataclass(frozen=True)
class Settings:
    """What the agent is to do."""

    uri: str
    folder: str
    copies: tuple[str, ...]
    """Folders of the job's other hosts on this machine, which begin with the same."""
    alive: str
    """Where the ranks that write to the folder have files open; see `vouching`."""
    frames: str
    """The log that takes its events."""
    job: str
    restore: bool
    """Whether the folder is to be filled first; not when an earlier agent of the same attempt was killed."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        fields = json.loads(text)
        return cls(**{**fields, "copies": tuple(fields["copies"])})


class Agent:
    """One attempt's checkpoints, from the restore to the last snapshot."""

    def __init__(self, owner: socket.socket) -> None:
        self._loop = Loop()
        self._link = Link(self._loop, owner, self._told, lambda link: self._finish(ALONE_SECONDS))
        self._settings: Settings | None = None
        self._done = False
        self._finishing = False
        self._look_due: Timer | None = None
        self._changed_at: float | None = None
        self._at_risk = 0
        self._vouched_for: dict[str, Stamp] = {}
        self._busy = False
        self._result: Published | Exception | None = None
        self._ended, self._end = os.pipe2(os.O_CLOEXEC)

    def run(self) -> None:
        """Serve until the owner has been answered for the last time."""
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)  # the owner says when it is time
        self._loop.run_until(lambda: self._settings is not None or self._done)
        if self._settings is None:
            return
        self._events = EventLog(FrameWriter(self._settings.frames))
        try:
            store = open_store(self._settings.uri, retry_seconds=STORE_SECONDS)
            self._begin(self._settings, store)
        except (StorageError, OSError) as error:
            self._answer("failed", str(error))
            return
        self._loop.on_readable(self._folder.fileno(), self._news)
        self._loop.on_readable(self._ended, self._call_ended)
        self._loop.after(REPORT_SECONDS, self._report)
        self._look_soon(0)
        self._loop.run_until(lambda: self._done)

    def _begin(self, settings: Settings, store: Store) -> None:
        mine = claim(store, settings.job)
        self._folder = Folder(settings.folder)
        self._publisher = Publisher(store, mine, self._folder)
        if settings.restore:
            restored = restore(store, settings.folder)
            copy(settings.folder, settings.copies)
        else:
            manifest = newest_whole_manifest(store)
            restored = Restored(str(manifest.name) if manifest else NOTHING, manifest, 0, 0)
        self._publisher.begin_with(restored.manifest, restored.base)
        facts = {"base": restored.base, "files": restored.files, "bytes": restored.size}
        self._events.emit("checkpoint_restored", attempt=mine.attempt, passed_over=restored.passed_over, **facts)
        self._answer("restored", restored.base, str(restored.files), str(restored.size), *restored.passed_over)

    # The owner.

    def _told(self, link: Link, message: list[str]) -> None:
        kind, value = message
        if kind == "settings":
            self._settings = Settings.from_json(value)
        elif kind == "finish":
            self._finish(float(value))

    def _finish(self, seconds: float) -> None:
        if self._settings is None:
            self._done = True
            return
        self._finishing = True
        self._loop.after(seconds, lambda: self._last_word("there was no more time"))
        self._look_soon(0)

    def _answer(self, *fields: str) -> None:
        self._link.send(*fields)

    def _last_word(self, reason: str = "") -> None:
        if not self._done:
            self._done = True
            self._answer("finished", str(self._at_risk), reason)

    # The folder.

    def _news(self) -> None:
        if self._folder.changed():
            self._changed_at = self._changed_at or time.monotonic()
            self._look_soon(SETTLE_SECONDS)

    def _look_soon(self, seconds: float) -> None:
        if self._look_due is not None:
            self._look_due.cancel()
        self._look_due = self._loop.after(seconds, self._look)

    def _look(self) -> None:
        """Publish what the folder holds, if that is news; while something is under way, its end looks again."""
        if self._busy:
            return
        state = self._folder.state(self._publisher.stamps, HOLD_STILL_SECONDS)
        if state is None:
            self._look_soon(SETTLE_SECONDS)
            return
        self._at_risk = self._publisher.size_of_news(state)
        if self._is_vouched_for(state) and self._publisher.is_news(state):
            self._call(lambda: self._publisher.publish(state))
            return
        if not state.unsettled:
            self._changed_at = None
        if self._finishing:
            self._last_word("not every file is known to be whole" if self._at_risk else "")

    def _is_vouched_for(self, state: State) -> bool:
        """Whether every file is what the script meant to write: a rank's death may have closed the others."""
        assert self._settings is not None
        if is_vouched_for(self._settings.alive):
            self._vouched_for = state.files
            self._folder.forget_moves()
            return True
        known = {**self._publisher.stamps, **self._vouched_for}
        news = (path for path, stamp in state.files.items() if known.get(path) != stamp)
        return all(self._folder.was_moved_here(path) for path in news)

    # What takes its time is done in a thread, one call after the other: the folder and the owner are heard meanwhile.

    def _call(self, call: Callable[[], Published | None]) -> None:
        def run() -> None:
            try:
                self._result = call()
            except Exception as error:
                self._result = error
            os.write(self._end, b".")

        self._busy = True
        threading.Thread(target=run, daemon=True).start()

    def _call_ended(self) -> None:
        os.read(self._ended, 1)
        result, self._busy = self._result, False
        if isinstance(result, Published):
            self._note(result)
            self._call(self._publisher.clean_up)
        elif result is None:
            self._look_soon(0)
        elif isinstance(result, SourceChanged):
            self._look_soon(SETTLE_SECONDS)
        else:
            self._events.emit("checkpoint_failed", reason=str(result), bytes=self._at_risk)
            if isinstance(result, Overtaken):
                self._loop.forget(self._folder.fileno())
                self._last_word(str(result))
            else:
                self._look_soon(AGAIN_SECONDS)

    def _note(self, published: Published) -> None:
        manifest = published.manifest
        seconds = time.monotonic() - self._changed_at if self._changed_at else 0.0
        self._changed_at, self._at_risk = None, 0
        self._events.emit(
            "checkpoint_published",
            snapshot=str(manifest.name),
            files=len(manifest.files),
            bytes=manifest.size,
            sent=published.uploaded_size,
            seconds=round(seconds, 4),
        )

    def _report(self) -> None:
        if self._changed_at is not None and self._at_risk:
            seconds = round(time.monotonic() - self._changed_at, 1)
            if seconds >= REPORT_SECONDS:
                self._events.emit("checkpoint_lag", bytes=self._at_risk, seconds=seconds)
        self._loop.after(REPORT_SECONDS, self._report)


if __name__ == "__main__":
    Agent(socket.socket(fileno=int(sys.argv[1]))).run()
    os._exit(0)  # a publication that had no more time ends here: its manifest was never written
