"""The agent: a process that puts a folder back from a store, then watches it and publishes what settles there.

It answers what it restored, or why it could not. Told to finish, it publishes what there is, answers, and ends. When
the owner is gone, it finishes by itself.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])

from estimator_container.agents.background import BackgroundCall
from estimator_container.agents.checkpoints.backlog import Backlog
from estimator_container.agents.checkpoints.format import NOTHING, ROOT
from estimator_container.agents.checkpoints.publications import AGAIN_SECONDS, SETTLE_SECONDS, Publications
from estimator_container.agents.checkpoints.publisher import Publisher
from estimator_container.agents.checkpoints.restore import Restored, claim, copy, newest_whole_manifest, restore
from estimator_container.agents.checkpoints.settings import CheckpointSettings
from estimator_container.agents.checkpoints.settled import FolderReport, SettledFiles
from estimator_container.agents.watching.agent import WatchingAgent
from estimator_container.agents.watching.folder import WatchedFolder
from estimator_container.contract.agent_events import (
    CheckpointFailed,
    CheckpointLag,
    CheckpointLeftOut,
    CheckpointRestored,
)
from estimator_container.logs.events import EventLog
from estimator_container.logs.frames import FrameWriter
from estimator_container.storage import StorageError, open_store

AT_MOST_SECONDS = 0.25  # from the first news to the look: there may be a file that is written all the time
STORE_SECONDS = 60.0  # that a call to the store is tried before its failure is reported
STALL_SECONDS = 10.0  # that a connection may say nothing: a grace period has room for several
REPORT_SECONDS = 5.0  # between two reports of what is not in the store yet
ALONE_SECONDS = 10.0  # to finish in when the owner is gone
CLEAN_UP_SECONDS = 10.0  # for what is to be removed at the end, when all is published


class CheckpointAgent(WatchingAgent):
    """One attempt's checkpoints, from the restore to the last snapshot."""

    def __init__(self, owner: socket.socket) -> None:
        super().__init__(owner)
        self._backlog = Backlog()
        self._has_begun = False
        self._restores = True
        self._finish_by: float | None = None
        """Until when it has to finish, where it was told to before it had begun."""
        self._is_finishing = False
        self._all_published = False
        self._looked_at = 0  # the number of the news, as the folder counts them

    def _begin(self, settings: str) -> None:
        self._settings = CheckpointSettings.from_json(settings)
        self._restores = self._settings.restore
        self._events = EventLog(FrameWriter(self._settings.frames))
        self.in_background(lambda: self._restore(self._settings), self._restored)

    def _restore(self, settings: CheckpointSettings) -> tuple[int, Restored]:
        self._hold(settings.held)
        store = open_store(settings.uri, retry_seconds=STORE_SECONDS, stall_seconds=STALL_SECONDS)
        store.remove_unfinished(ROOT)  # before anything is written: it may be what has filled the disk
        mine = claim(store, settings.job)
        if mine.attempt <= settings.after:
            hint = "give a folder that both share, or an s3:// URI"
            raise StorageError(f"{settings.uri} is not the folder here that it is where the job was started; {hint}")
        self._folder = WatchedFolder(settings.folder, settings.named)
        self._publisher = Publisher(store, mine, self._folder, settings.kept)
        if settings.restore:
            restored = restore(store, settings.folder, at_hand=settings.at_hand)
            copy(settings.folder, settings.copies)
        else:
            manifest = newest_whole_manifest(store)
            restored = Restored(str(manifest.name) if manifest else NOTHING, manifest, 0, 0)
        self._publisher.begin_with(restored.manifest, restored.base, in_use=not settings.restore)
        self._folder.watch()  # before the script may start
        return mine.attempt, restored

    def _restored(self, call: BackgroundCall[tuple[int, Restored]]) -> None:
        try:
            attempt, restored = call.result()
        except Exception as error:
            self._is_over = True
            if not self._settings.restore:  # nobody waits for this one: training goes on
                self._events.emit(CheckpointFailed(str(error), self._backlog.size))
            self._answer("failed", str(error))
            return
        passed_over, base = restored.passed_over, restored.base
        if not self._settings.after:  # else it was told by who has restored
            self._events.emit(CheckpointRestored(attempt, passed_over, base, restored.files, restored.size))
        content = self._publisher.newest_content or base
        self._answer("restored", base, content, str(restored.files), str(restored.size), str(attempt), *passed_over)
        self._settled = SettledFiles(self._folder, self._publisher, self._settings)
        self._publications = Publications(
            self, self._publisher, self._settled, self._backlog, self._events, self._last_word
        )
        self._has_begun = True
        self._loop.on_readable(self._folder.fileno(), self._news)
        self._loop.after(REPORT_SECONDS, self._report)
        self.look_soon(0)
        if self._finish_by is not None:
            self._finish(str(max(0.0, self._finish_by - time.monotonic())))

    # The owner.

    def _owner_gone(self) -> None:
        self._finish(str(ALONE_SECONDS))

    def _finish(self, value: str) -> None:
        if not self._has_begun:
            self._finish_by = time.monotonic() + float(value)
            if self._restores:
                self._last_word()  # the script has not started: there is nothing to publish
            return
        self._is_finishing = True
        self._publications.finish()
        self._loop.after(float(value), self._out_of_time)
        self.look_soon(0)

    def _out_of_time(self) -> None:
        failure = self._publications.failure
        self._last_word("there was no time left" + (f": {failure}" if failure else ""))

    def _last_word(self, reason: str = "") -> None:
        if not self._is_over:
            self._is_over = True
            newest = self._publisher.newest_content if self._has_begun else ""
            self._answer("finished", str(self._backlog.size), "" if self._all_published else reason, newest)

    # The folder.

    def _news(self) -> None:
        if self._folder.changed():
            self._note_change()
            self.look_after_news(SETTLE_SECONDS, AT_MOST_SECONDS)

    def _note_change(self) -> None:
        self._all_published = False
        self._backlog.changed()

    def _look(self) -> None:
        """Publish what the folder holds, if that is news; while something is under way, its end looks again."""
        if self._is_job_removed():
            self._last_word("the job's folder was removed")
            return
        try:
            found = self._settled.look(self._is_finishing)
        except OSError as error:
            self._look_failed(error)
            return
        if found is None:
            self.look_soon(SETTLE_SECONDS)
            return
        if found.state.news != self._looked_at:  # a look, or a publication, may be the first to hear of a change
            self._looked_at = found.state.news
            self._note_change()
        self._backlog.size, self._backlog.waits_for = found.size, found.waits_for
        # Looked at while something is under way, too: what is whole now may not be known to be whole later.
        if not self.is_busy:
            self._act_on(found)

    def _look_failed(self, error: OSError) -> None:
        self._publications.failed(error)
        if self._is_finishing:
            self._last_word(str(error))
        else:
            self.look_soon(AGAIN_SECONDS)

    def _act_on(self, found: FolderReport) -> None:
        if found.can_be_published:
            self._publications.publish(found)
            return
        if found.is_old:
            self._backlog.nothing_new()
        if self._is_finishing:
            self._end_after(found)
        elif found.is_news:
            self.look_soon(AGAIN_SECONDS)  # a rank that has just ended in order may not have said so yet
        else:
            seconds = self._settled.seconds_to_next_log(found)
            if seconds is not None:
                self.look_soon(seconds)

    def _end_after(self, found: FolderReport) -> None:
        if found.fault or not self._publications.has_to_clean_up:
            self._last_word(found.fault)
            return
        self._all_published = True
        self._loop.after(CLEAN_UP_SECONDS, self._last_word)
        self._publications.clean_up()

    def _report(self) -> None:
        left_out = self._settled.newly_left_out()
        if left_out:
            self._events.emit(CheckpointLeftOut(left_out))
        seconds = round(self._backlog.seconds(), 1)
        if seconds >= REPORT_SECONDS and (self._backlog.size or self._backlog.waits_for):
            self._events.emit(CheckpointLag(self._backlog.size, seconds, self._backlog.waits_for))
        self._loop.after(REPORT_SECONDS, self._report)


if __name__ == "__main__":
    CheckpointAgent(socket.socket(fileno=int(sys.argv[1]))).run()
    os._exit(0)  # a publication that had no more time ends here: its manifest was never written
