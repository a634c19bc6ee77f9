"""The jobs of backends with a folder of their own in the home: their clusters are asked, in a thread for each backend.

Answers may take long, as where a machine cannot be reached.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from ... import backends
from ...backends.port import Summary
from ...backends.status import FINAL
from ...backends.supervised.job_folder import registry
from ...errors import EstimatorError
from ...values.home import JobFolder, home
from ...values.job_name import is_name
from .index import record_of

if TYPE_CHECKING:
    from ...backends.port import StartedJob
    from .index import Change, JobIndex

LOOK_SECONDS = 3.0  # between two looks at jobs that run


class JobsApart:
    """Keeps what the index has of the jobs of one backend up to date."""

    def __init__(self, index: JobIndex, backend: str) -> None:
        self._index = index
        self._backend = backend
        self._folder = home() / backend
        self._inodes: dict[str, int] = {}
        """Of the folders, which tell a job from an earlier one of its name."""
        self._heard: dict[str, Summary] = {}
        self._running: dict[str, StartedJob] = {}
        """Kept from look to look, with what they keep open to their cluster."""
        self._records: dict[str, tuple[int, int]] = {}
        self._over = threading.Event()

    def follow(self, tell: Callable[[Change], None]) -> None:
        """Look, and tell what has changed, until `close` is called."""
        while not self._over.is_set():
            with suppress(EstimatorError, OSError):  # a home that is away for a moment; the next look tells
                for change in self.look():
                    if change.changed or change.removed:
                        tell(change)
            self._over.wait(LOOK_SECONDS)

    def close(self) -> None:
        """End `follow` soon."""
        self._over.set()

    def look(self) -> Iterator[Change]:
        """Look at the names, and ask about each job that is not known to have ended.

        A new one is there first as it was last known. Raises EstimatorError and OSError.
        """
        inodes = _folders(self._folder)
        for name in self._inodes.keys() - {name for name, inode in inodes.items() if self._inodes.get(name) == inode}:
            for known in (self._heard, self._running, self._records):
                known.pop(name, None)
        self._inodes = inodes
        for name in inodes.keys() - self._heard.keys():
            with suppress(EstimatorError, OSError):  # it is being made
                self._heard[name] = Summary.from_state(registry.last(JobFolder(self._folder / name)))
        yield self._index.take(self._backend, self._heard.values())
        also = {name for name in inodes if self._is_changed(name)}
        yield self._index.take(self._backend, self._heard.values(), also)

    def _is_changed(self, name: str) -> bool:
        """Ask how a job is; returns whether its record says something else than before."""
        if name in self._heard and self._heard[name].status in FINAL:
            return False
        try:
            if name not in self._running:
                self._running[name] = backends.load(self._backend).attach(name)
            self._heard[name] = self._running[name].summary()
        except (EstimatorError, OSError):  # it is being made, or removed, or its cluster does not answer
            self._running.pop(name, None)
            return False
        if self._heard[name].status in FINAL:
            self._running.pop(name)
        before, self._records[name] = self._records.get(name), record_of(JobFolder(self._folder / name))
        return before != self._records[name]


def _folders(jobs: os.PathLike[str]) -> dict[str, int]:
    try:
        with os.scandir(jobs) as entries:
            return {entry.name: entry.inode() for entry in entries if is_name(entry.name)}
    except FileNotFoundError:
        return {}
