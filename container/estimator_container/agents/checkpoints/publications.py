"""When a state is published: one after the other, and again after a pause where the store has refused."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...contract.agent_events import CheckpointFailed, CheckpointPublished
from ...logs.events import EventLog
from ...storage import SourceChanged, StoreUnavailable
from ..background import BackgroundCall
from ..watching.agent import WatchingAgent
from .appended import Rewritten, StillWritten
from .backlog import Backlog
from .publisher import Overtaken, Published, Publisher
from .settled import FolderReport, SettledFiles

SETTLE_SECONDS = 0.005  # without news, before a state is looked at: files of one checkpoint come together
AGAIN_SECONDS = 1.0  # between a publication that failed, or a state that is in doubt, and the next look
AGAIN_AT_MOST = 16.0  # to which that grows while the store goes on to refuse
REFUSED_SECONDS = 60.0  # at the end, that what the store refuses is tried: somebody may sign in again


class Publications:
    """Publishes in the background; each end is followed by a look of the agent."""

    def __init__(
        self,
        agent: WatchingAgent,
        publisher: Publisher,
        settled: SettledFiles,
        backlog: Backlog,
        events: EventLog,
        give_up: Callable[[str], None],
    ) -> None:
        """`give_up` is called with the reason when nothing more can be published."""
        self.has_to_clean_up = False
        """Whether there is a new snapshot, and what it makes superfluous is still in the store."""
        self.failure = ""
        """What the last publication failed with."""
        self._agent = agent
        self._publisher = publisher
        self._settled = settled
        self._backlog = backlog
        self._events = events
        self._give_up = give_up
        self._finishing_since: float | None = None
        self._not_before = 0.0
        self._pause = AGAIN_SECONDS

    def finish(self) -> None:
        """Try again at once, whatever has failed, and give up what does not pass by itself."""
        self._finishing_since = time.monotonic()
        self._pause = AGAIN_SECONDS
        self._not_before = 0.0

    def publish(self, found: FolderReport) -> None:
        """Begin to publish what was found, or look again when it is time for that."""
        wait = self._not_before - time.monotonic()
        if wait > 0:
            self._agent.look_soon(wait)
            return
        self._backlog.publishing()
        self._agent.in_background(lambda: self._publisher.publish(found.state, found.logs), self._ended)

    def clean_up(self) -> None:
        """Begin to remove what no snapshot needs that is kept."""
        self.has_to_clean_up = False
        self._agent.in_background(self._publisher.clean_up, self._cleaned_up)

    def failed(self, error: Exception) -> None:
        """Tell why checkpoints are not kept; it goes on to be tried, and is said once."""
        if str(error) != self.failure:
            self.failure = str(error)
            self._events.emit(CheckpointFailed(self.failure, self._backlog.size))

    def _ended(self, call: BackgroundCall[Published]) -> None:
        try:
            published = call.result()
        except Exception as error:
            self._backlog.not_published()
            self._not_published(error)
            return
        self._note(published)
        self.has_to_clean_up = True
        if self._finishing_since is None:
            self.clean_up()
        else:
            self._agent.look_soon(0)

    def _note(self, published: Published) -> None:
        seconds = self._backlog.published()
        self._pause, self.failure = AGAIN_SECONDS, ""
        manifest, sent = published.manifest, published.uploaded_size
        name, files = str(manifest.name), len(manifest.files)
        self._events.emit(CheckpointPublished(name, files, manifest.size, sent, round(seconds, 4)))

    def _not_published(self, error: Exception) -> None:
        if isinstance(error, Rewritten):
            self._settled.note_rewritten(error.path)
            self._agent.look_soon(0)
        elif isinstance(error, SourceChanged):
            self._agent.look_soon(AGAIN_SECONDS if isinstance(error, StillWritten) else SETTLE_SECONDS)
        else:
            self.failed(error)
            if isinstance(error, Overtaken) or self._is_refused_for_good(error):
                self._give_up(str(error))
                return
            self._not_before = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, AGAIN_AT_MOST)
            self._agent.look_soon(0)

    def _is_refused_for_good(self, error: Exception) -> bool:
        """Whether to wait any longer, when the script has ended, for what does not pass by itself."""
        if self._finishing_since is None or isinstance(error, StoreUnavailable):
            return False
        return time.monotonic() - self._finishing_since > REFUSED_SECONDS

    def _cleaned_up(self, call: BackgroundCall[None]) -> None:
        try:
            call.result()
        except Exception as error:
            self.failed(error)
        self._agent.look_soon(0)
