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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])

from estimator_container.agents.checkpoints.appended import Rewritten, StillWritten
from estimator_container.agents.checkpoints.folder import Folder, Stamp, State
from estimator_container.agents.checkpoints.format import NOTHING
from estimator_container.agents.checkpoints.publisher import KEPT, Overtaken, Published, Publisher
from estimator_container.agents.checkpoints.ranks_alive import is_vouched_for
from estimator_container.agents.checkpoints.restore import Restored, claim, copy, newest_whole_manifest, restore
from estimator_container.logs.events import EventLog
from estimator_container.logs.frames import FrameWriter
from estimator_container.runtime.held import Held
from estimator_container.runtime.links import Link
from estimator_container.runtime.loop import Loop, Timer
from estimator_container.storage import SourceChanged, StoreUnavailable, open_store

SETTLE_SECONDS = 0.005  # without news, before a state is looked at: files of one checkpoint come together
AT_MOST_SECONDS = 0.25  # from the first news to the look: there may be a file that is written all the time
HOLD_STILL_SECONDS = 1.0  # that a folder has for one look; after that the agent hears its owner, and looks again
STORE_SECONDS = 60.0  # that a call to the store is tried before its failure is reported
STALL_SECONDS = 10.0  # that a connection may say nothing: a grace period has room for several
AGAIN_SECONDS = 1.0  # between a publication that failed, or a state that nobody vouches for, and the next look
AGAIN_AT_MOST = 16.0  # to which that grows while the store goes on to refuse
REFUSED_SECONDS = 60.0  # at the end, that what the store refuses is tried: somebody may sign in again
LOG_SECONDS = 30.0  # that somebody has a file open before what was appended to it counts: no checkpoint takes so long
LEFT_OUT_SECONDS = 60.0  # that a new file has been open before it is said that it is not kept
REPORT_SECONDS = 5.0  # between two reports of what is not in the store yet
ALONE_SECONDS = 10.0  # to finish in when the owner is gone
CLEAN_UP_SECONDS = 10.0  # for what is to be removed at the end, when all is published


@dataclass(frozen=True)
class Settings:
    """What the agent is to do."""

    uri: str
    folder: str
    copies: tuple[str, ...]
    """Folders of the job's other hosts on this machine, which begin with the same."""
    alive: str
    """Where the ranks that write to the folder have files open; see `ranks_alive`."""
    frames: str
    """The log that takes its events."""
    job: str
    restore: bool
    """Whether the folder is to be filled first; not when an earlier agent of the same attempt was killed."""
    kept: int = KEPT
    """How many snapshots stay in the store."""
    log_seconds: float = LOG_SECONDS
    named: str = ""
    """The folder's path as the script knows it, where that is another."""
    held: str | None = None
    """The job's folder: once another is in its place, nothing more is published."""

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
        self._begun = False
        self._done = False
        self._finishing_since: float | None = None
        self._all_published = False
        self._log_seconds = LOG_SECONDS
        self._look_due: Timer | None = None
        self._look_by: float | None = None
        self._changed_at: float | None = None
        self._looked_at = 0  # the number of the news, as the folder counts them
        self._publishing_since: float | None = None
        self._not_before = 0.0
        self._pause = AGAIN_SECONDS
        self._failure = ""
        self._at_risk = 0
        self._open: list[str] = []
        self._open_since: dict[str, float] = {}
        self._rewritten: set[str] = set()
        self._not_kept: set[str] = set()
        self._left_out: set[str] = set()
        self._vouched_for: dict[str, Stamp] = {}
        self._busy = False
        self._to_clean_up = False
        self._result: object = None
        self._ended, self._end = os.pipe2(os.O_CLOEXEC)

    def run(self) -> None:
        """Serve until the owner has been answered for the last time."""
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)  # the owner says when it is time
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # its default ends the process; see `has_writer`
        self._loop.on_readable(self._ended, self._call_ended)
        self._loop.run_until(lambda: self._settings is not None or self._done)
        if self._settings is None:
            return
        settings = self._settings
        self._log_seconds = settings.log_seconds
        self._events = EventLog(FrameWriter(settings.frames))
        self._call(lambda: self._begin(settings), self._begin_ended)
        self._loop.run_until(lambda: self._done)

    def _begin(self, settings: Settings) -> tuple[int, Restored]:
        store = open_store(settings.uri, retry_seconds=STORE_SECONDS, stall_seconds=STALL_SECONDS)
        mine = claim(store, settings.job)
        self._held = Held(settings.held) if settings.held else None
        self._folder = Folder(settings.folder, settings.named)
        self._publisher = Publisher(store, mine, self._folder, settings.kept)
        if settings.restore:
            restored = restore(store, settings.folder)
            copy(settings.folder, settings.copies)
        else:
            manifest = newest_whole_manifest(store)
            restored = Restored(str(manifest.name) if manifest else NOTHING, manifest, 0, 0)
        self._publisher.begin_with(restored.manifest, restored.base, in_use=not settings.restore)
        self._folder.watch()  # before the script may start
        return mine.attempt, restored

    def _begin_ended(self, result: object) -> None:
        if isinstance(result, Exception):
            self._done = True
            self._link.send("failed", str(result))
            return
        assert isinstance(result, tuple)
        attempt, restored = result
        facts = {"base": restored.base, "files": restored.files, "bytes": restored.size}
        self._events.emit("checkpoint_restored", attempt=attempt, passed_over=restored.passed_over, **facts)
        self._link.send("restored", restored.base, str(restored.files), str(restored.size), *restored.passed_over)
        self._begun = True
        self._loop.on_readable(self._folder.fileno(), self._news)
        self._loop.after(REPORT_SECONDS, self._report)
        self._look_soon(0)

    # The owner.

    def _told(self, link: Link, message: list[str]) -> None:
        kind, value = message
        if kind == "settings":
            self._settings = Settings.from_json(value)
        elif kind == "finish":
            self._finish(float(value))

    def _finish(self, seconds: float) -> None:
        if not self._begun:
            self._last_word()  # the script has not started: there is nothing to publish
            return
        self._finishing_since = time.monotonic()
        self._pause = AGAIN_SECONDS
        self._not_before = 0.0
        self._loop.after(seconds, self._out_of_time)
        self._look_soon(0)

    def _out_of_time(self) -> None:
        self._last_word("there was no more time" + (f": {self._failure}" if self._failure else ""))

    def _last_word(self, reason: str = "") -> None:
        if not self._done:
            self._done = True
            self._link.send("finished", str(self._at_risk), "" if self._all_published else reason)

    # The folder.

    def _news(self) -> None:
        if self._folder.changed():
            self._note_change()
            now = time.monotonic()
            self._look_by = self._look_by or now + AT_MOST_SECONDS
            self._look_soon(max(0.0, min(SETTLE_SECONDS, self._look_by - now)))

    def _note_change(self) -> None:
        self._all_published = False
        self._changed_at = self._changed_at or time.monotonic()

    def _look_soon(self, seconds: float) -> None:
        if self._look_due is not None:
            self._look_due.cancel()
        self._look_due = self._loop.after(seconds, self._look)

    def _look(self) -> None:
        """Publish what the folder holds, if that is news; while something is under way, its end looks again."""
        self._look_by = None
        if self._held is not None and not self._held.is_there():
            self._last_word("the job's folder was removed")
            return
        try:
            state = self._folder.state(self._publisher.stamps, HOLD_STILL_SECONDS)
        except OSError as error:
            self._look_failed(error)
            return
        if state is None:
            self._look_soon(SETTLE_SECONDS)
            return
        if state.news != self._looked_at:  # a look, or a publication, may be the first to hear of a change
            self._looked_at = state.news
            self._note_change()
        # Also while something is under way: what is whole now may not be known to be whole later.
        doubtful = self._doubtful(state)
        self._at_risk = self._publisher.size_of_news(state)
        self._note_open(state, doubtful)
        state.reopened -= {path for path in state.reopened if self._is_open_for_long(path)}
        if self._finishing_since is not None:
            # Nobody comes any more who would vouch for what a rank had open for long. Of a log there is more to say.
            state.leave_out(path for path in doubtful if self._is_open_for_long(path))
        logs = self._logs(state)
        self._open = [path for path in self._publisher.waits_for(state) if path not in logs]
        if self._busy:
            return
        is_news = self._publisher.is_news(state, logs)
        if is_news and not set(doubtful) & state.files.keys():
            self._publish(state, logs)
            return
        if not is_news and not state.unsettled - set(logs):
            self._changed_at = None
        if self._finishing_since is not None:
            self._look_for_the_end(state, doubtful)
        elif is_news:
            self._look_soon(AGAIN_SECONDS)  # a rank that has just ended in order may not have said so yet
        else:
            self._look_when_there_are_logs()

    def _publish(self, state: State, logs: Sequence[str]) -> None:
        wait = self._not_before - time.monotonic()
        if wait > 0:
            self._look_soon(wait)
            return
        self._publishing_since, self._changed_at = self._changed_at, None
        self._call(lambda: self._publisher.publish(state, logs), self._publication_ended)

    def _note_open(self, state: State, doubtful: Sequence[str]) -> None:
        """Since when files are open for writing; for a file that a rank's death may have closed that goes on."""
        now = time.monotonic()
        still = {path: since for path, since in self._open_since.items() if path in doubtful}
        self._open_since = {**{path: self._open_since.get(path, now) for path in state.unsettled}, **still}
        self._rewritten &= self._open_since.keys()

    def _is_open_for_long(self, path: str) -> bool:
        since = self._open_since.get(path)
        return since is not None and time.monotonic() - since >= self._log_seconds

    def _logs(self, state: State) -> list[str]:
        """The files that hold up a snapshot, and have been open for longer than anybody writes a checkpoint.

        They are logs if they have only grown, which shows when they are copied.
        """
        waited_for = set(self._publisher.waits_for(state))
        self._not_kept = state.unsettled - waited_for
        return sorted(path for path in waited_for - self._rewritten if self._is_open_for_long(path))

    def _look_when_there_are_logs(self) -> None:
        """Nothing tells that a file has been open for long."""
        due = [self._open_since[path] + self._log_seconds for path in self._open if path not in self._rewritten]
        if due:
            self._look_soon(max(0.0, min(due) - time.monotonic()))

    def _look_failed(self, error: OSError) -> None:
        self._failed(error)
        if self._finishing_since is not None:
            self._last_word(str(error))
        else:
            self._look_soon(AGAIN_SECONDS)

    def _look_for_the_end(self, state: State, doubtful: Sequence[str]) -> None:
        if doubtful:
            self._last_word(f"not every file is known to be whole: {', '.join(doubtful)}")
        elif state.unsettled:
            self._last_word(f"somebody still has {', '.join(sorted(state.unsettled))} open for writing")
        elif self._to_clean_up:
            self._all_published = True
            self._loop.after(CLEAN_UP_SECONDS, self._last_word)
            self._clean_up()
        else:
            self._last_word()

    def _doubtful(self, state: State) -> list[str]:
        """The files that may not be what the script meant to write: a rank's death may have closed them."""
        assert self._settings is not None
        if is_vouched_for(self._settings.alive):
            self._vouched_for = state.files
            self._folder.forget_moves()
            return []
        known = {**self._publisher.stamps, **self._vouched_for}
        news = (path for path, stamp in state.files.items() if known.get(path) != stamp)
        return [path for path in news if not self._folder.was_moved_here(path, state.files[path])]

    # What takes its time is done in a thread, one call after the other: the folder and the owner are heard meanwhile.

    def _call(self, call: Callable[[], object], ended: Callable[[object], None]) -> None:
        def run() -> None:
            try:
                self._result = call()
            except Exception as error:
                self._result = error
            os.write(self._end, b".")

        self._busy = True
        self._call_back = ended
        threading.Thread(target=run, daemon=True).start()

    def _call_ended(self) -> None:
        os.read(self._ended, 1)
        self._busy = False
        self._call_back(self._result)

    def _publication_ended(self, result: object) -> None:
        if isinstance(result, Published):
            self._note(result)
            self._to_clean_up = True
            if self._finishing_since is not None:
                self._look_soon(0)
            else:
                self._clean_up()
            return
        self._changed_at, self._publishing_since = self._publishing_since or self._changed_at, None
        if isinstance(result, Rewritten):
            self._rewritten.add(result.path)
            self._look_soon(0)
            return
        if isinstance(result, SourceChanged):
            self._look_soon(AGAIN_SECONDS if isinstance(result, StillWritten) else SETTLE_SECONDS)
            return
        self._failed(result)
        if isinstance(result, Overtaken):
            self._loop.forget(self._folder.fileno())
            self._last_word(str(result))
        elif self._is_refused_for_good(result):
            self._last_word(str(result))
        else:
            self._not_before = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, AGAIN_AT_MOST)
            self._look_soon(0)

    def _is_refused_for_good(self, failure: object) -> bool:
        """Whether to wait any longer, when the script has ended, for what does not pass by itself."""
        if self._finishing_since is None or isinstance(failure, StoreUnavailable):
            return False
        return time.monotonic() - self._finishing_since > REFUSED_SECONDS

    def _clean_up(self) -> None:
        self._to_clean_up = False
        self._call(self._publisher.clean_up, self._clean_up_ended)

    def _clean_up_ended(self, result: object) -> None:
        if isinstance(result, Exception):
            self._failed(result)
        self._look_soon(0)

    def _failed(self, error: object) -> None:
        reason = str(error)
        if reason != self._failure:  # it goes on to be tried, and is said once
            self._failure = reason
            self._events.emit("checkpoint_failed", reason=reason, bytes=self._at_risk)

    def _note(self, published: Published) -> None:
        manifest = published.manifest
        seconds = time.monotonic() - self._publishing_since if self._publishing_since else 0.0
        self._publishing_since, self._at_risk = None, 0
        self._pause, self._failure = AGAIN_SECONDS, ""
        self._events.emit(
            "checkpoint_published",
            snapshot=str(manifest.name),
            files=len(manifest.files),
            bytes=manifest.size,
            sent=published.uploaded_size,
            seconds=round(seconds, 4),
        )

    def _report(self) -> None:
        self._report_left_out()
        since = self._publishing_since or self._changed_at
        if since is not None and (self._at_risk or self._open):
            seconds = round(time.monotonic() - since, 1)
            if seconds >= REPORT_SECONDS:
                self._events.emit("checkpoint_lag", bytes=self._at_risk, seconds=seconds, open=self._open)
        self._loop.after(REPORT_SECONDS, self._report)

    def _report_left_out(self) -> None:
        """Say once of each new file that it is open for so long, for until it is closed no snapshot has it."""
        now = time.monotonic()
        found = {path for path in self._not_kept if now - self._open_since[path] >= LEFT_OUT_SECONDS}
        if found - self._left_out:
            self._events.emit("checkpoint_left_out", files=sorted(found - self._left_out))
            self._left_out |= found


if __name__ == "__main__":
    Agent(socket.socket(fileno=int(sys.argv[1]))).run()
    os._exit(0)  # a publication that had no more time ends here: its manifest was never written
