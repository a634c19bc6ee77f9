"""What of a folder is not in a snapshot yet: how much it is, since when, and what it waits for."""

from __future__ import annotations

import time
from collections.abc import Sequence


class Backlog:
    """From the first change after a snapshot to the next snapshot."""

    def __init__(self) -> None:
        self.size = 0
        """Bytes of the files that nobody is writing."""
        self.waits_for: Sequence[str] = ()
        """Files that somebody writes, and that no snapshot may be without."""
        self._changed_at: float | None = None
        self._publishing_since: float | None = None

    def changed(self) -> None:
        """Something in the folder has changed."""
        self._changed_at = self._changed_at or time.monotonic()

    def nothing_new(self) -> None:
        """What has changed is not worth a snapshot."""
        self._changed_at = None

    def publishing(self) -> None:
        """What has changed by now is being published; what changes from now on is not."""
        self._publishing_since, self._changed_at = self._changed_at, None

    def published(self) -> float:
        """Returns how long it took, in seconds from the first change."""
        since, self._publishing_since, self.size = self._publishing_since, None, 0
        return time.monotonic() - since if since else 0.0

    def not_published(self) -> None:
        """Publishing has failed, so what was to be published still waits, from its first change on."""
        self._changed_at, self._publishing_since = self._publishing_since or self._changed_at, None

    def seconds(self) -> float:
        """Since the first change; 0.0 where there is none."""
        since = self._publishing_since or self._changed_at
        return time.monotonic() - since if since is not None else 0.0
