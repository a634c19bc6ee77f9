"""How the jobs are that run at a service: asked now and then, in a thread of its own, for answers may take long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ... import backends
from ...errors import EstimatorError
from ...job import services
from .index import SERVICES

if TYPE_CHECKING:
    from .index import Change, JobIndex

ASK_SECONDS = 30.0  # between two rounds of questions


class ServiceWatch:
    """Keeps what the index has of such jobs up to date."""

    def __init__(self, index: JobIndex) -> None:
        self._index = index
        self._over = threading.Event()

    def follow(self, tell: Callable[[Change], None]) -> None:
        """Ask, and tell what has changed, until `close` is called."""
        while not self._over.is_set():
            with suppress(EstimatorError, OSError):  # of a home that is away for a moment
                noted = backends.submitted()
                services.ask(noted)
                change = self._index.take(SERVICES, (each.summary() for each in noted))
                if change.changed or change.removed:
                    tell(change)
            self._over.wait(ASK_SECONDS)

    def close(self) -> None:
        """End `follow` soon."""
        self._over.set()
