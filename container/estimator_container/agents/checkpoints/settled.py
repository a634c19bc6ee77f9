"""What of a folder is settled: whole, not being written, and not what a rank's death has left."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..watching.folder import WatchedFolder
from ..watching.state import FolderState, Stamp
from .publisher import Publisher
from .ranks_alive import no_rank_died
from .settings import CheckpointSettings

HOLD_STILL_SECONDS = 1.0  # that a folder has for one look; after that the agent hears its owner, and looks again
LEFT_OUT_SECONDS = 60.0  # that a new file has been open before it is said that it is not kept


@dataclass(frozen=True)
class FolderReport:
    """What a look at the folder has found."""

    state: FolderState
    logs: Sequence[str]
    """Files that hold up a snapshot, and have been open for longer than anybody writes a checkpoint.

    They are logs if they have only grown, which shows when they are copied.
    """
    waits_for: Sequence[str]
    """Other files that hold one up, because somebody writes them."""
    doubtful: Sequence[str]
    """Files that may not be what the script meant to write: a rank's death may have closed them."""
    size: int
    """Bytes of the files that nobody is writing and that are in no snapshot yet."""
    is_news: bool

    @property
    def can_be_published(self) -> bool:
        """Whether there is something new and every file of the state is known to be complete."""
        return self.is_news and not set(self.doubtful) & self.state.files.keys()

    @property
    def is_old(self) -> bool:
        """Whether it is all in a snapshot, but for what was appended to logs."""
        return not self.is_news and not self.state.unsettled - set(self.logs)

    @property
    def fault(self) -> str:
        """Why it is not whole, when nobody writes any more; "" when it is."""
        if self.doubtful:
            return f"these files may be incomplete: {', '.join(self.doubtful)}"
        if self.state.unsettled:
            return f"these files are still open for writing: {', '.join(sorted(self.state.unsettled))}"
        return ""


class SettledFiles:
    """Tells look by look which files of the folder are settled."""

    def __init__(self, folder: WatchedFolder, publisher: Publisher, settings: CheckpointSettings) -> None:
        self._folder = folder
        self._publisher = publisher
        self._alive = settings.alive
        self._log_seconds = settings.log_seconds
        self._unkept_seconds = settings.unkept_seconds
        self._open_since: dict[str, float] = {}
        self._rewritten: set[str] = set()
        self._not_kept: Collection[str] = ()
        self._left_out: set[str] = set()
        self._known_whole: dict[str, Stamp] = {}

    def look(self, is_last: bool) -> FolderReport | None:
        """What there is; None where the folder did not hold still. Raises OSError.

        When it `is_last`, no rank is left that could still finish a file.
        """
        state = self._folder.state(self._publisher.stamps, HOLD_STILL_SECONDS)
        if state is None:
            return None
        doubtful = self._doubtful(state)
        size = self._publisher.size_of_news(state)
        self._note_open(state, doubtful)
        kept = self._publisher.kept
        state.reopened -= {path for path in state.reopened if self._is_open_for_long(path, kept)}
        if is_last:
            # Nobody can tell any more whether what a rank had open for long is whole. Of a log there is more to say.
            state.leave_out(path for path in doubtful if self._is_open_for_long(path, kept))
        waits_for = self._publisher.waits_for(state)
        self._not_kept = state.unsettled - set(waits_for)
        logs = [path for path in waits_for if path not in self._rewritten and self._is_open_for_long(path, kept)]
        others = [path for path in waits_for if path not in logs]
        return FolderReport(state, logs, others, doubtful, size, self._publisher.is_news(state, logs))

    def note_rewritten(self, path: str) -> None:
        """Take a file for none that has only grown, until it is closed."""
        self._rewritten.add(path)

    def seconds_to_next_log(self, found: FolderReport) -> float | None:
        """After which another look may find one more log, of which no news tells; None where no file can become one."""
        kept, waits_for = self._publisher.kept, set(found.waits_for) - self._rewritten
        due = [self._open_since[path] + self._patience(path, kept) for path in waits_for]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def newly_left_out(self) -> list[str]:
        """New files that have been open for long, and that no snapshot has until they are closed; each is told once."""
        now = time.monotonic()
        found = {path for path in self._not_kept if now - self._open_since[path] >= LEFT_OUT_SECONDS}
        new = sorted(found - self._left_out)
        self._left_out |= found
        return new

    def _doubtful(self, state: FolderState) -> list[str]:
        if no_rank_died(self._alive):
            self._known_whole = state.files
            self._folder.forget_moves()
            return []
        known = {**self._publisher.stamps, **self._known_whole}
        news = (path for path, stamp in state.files.items() if known.get(path) != stamp)
        return [path for path in news if not self._folder.was_moved_here(path, state.files[path])]

    def _note_open(self, state: FolderState, doubtful: Sequence[str]) -> None:
        """Since when files are open for writing; for a file that a rank's death may have closed that goes on."""
        now = time.monotonic()
        still = {path: since for path, since in self._open_since.items() if path in doubtful}
        self._open_since = {**{path: self._open_since.get(path, now) for path in state.unsettled}, **still}
        self._rewritten &= self._open_since.keys()

    def _patience(self, path: str, kept: Collection[str]) -> float:
        """The seconds after which an open file holds nothing up any more: as a log, or as one that is left out."""
        return self._log_seconds if path in kept else self._unkept_seconds

    def _is_open_for_long(self, path: str, kept: Collection[str]) -> bool:
        since = self._open_since.get(path)
        return since is not None and time.monotonic() - since >= self._patience(path, kept)
