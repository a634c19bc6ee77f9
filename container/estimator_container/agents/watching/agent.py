"""What agents have in common that look at a job's folders whenever something has changed there."""

from __future__ import annotations

import signal
import socket
import time

from ...runtime.folder_hold import FolderHold, HeldFolder
from ...runtime.loop import Timer
from ..agent import Agent


class WatchingAgent(Agent):
    """Looks once, a little after the last of several changes."""

    def __init__(self, owner: socket.socket) -> None:
        super().__init__(owner)
        self._held: FolderHold | None = None
        self._look_due: Timer | None = None
        self._look_by: float | None = None

    def run(self) -> None:
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # its default ends the process; see `has_writer`
        super().run()

    def look_soon(self, seconds: float) -> None:
        """Look in so many seconds, and not when it was said before."""
        if self._look_due is not None:
            self._look_due.cancel()
        self._look_due = self._loop.after(seconds, self._look_now)

    def look_after_news(self, settle: float, at_most: float) -> None:
        """Look once there was no more news for `settle` seconds; `at_most` seconds after the first, if it goes on."""
        now = time.monotonic()
        if self._look_by is None:
            self._look_by = now + at_most
        self.look_soon(max(0.0, min(settle, self._look_by - now)))

    def _look_now(self) -> None:
        self._look_by = None
        self._look()

    def _hold(self, job: HeldFolder | None) -> None:
        """Take for the job what is in this folder. Raises FolderReplaced where it is not the owner's, and OSError."""
        self._held = HeldFolder(*job).hold() if job is not None else None

    def _is_job_removed(self) -> bool:
        """Whether another job's folder, or none, is where this one's was: then nothing in it is ours."""
        return self._held is not None and not self._held.is_there()

    def _look(self) -> None:
        raise NotImplementedError
