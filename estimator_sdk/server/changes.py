"""Server-sent events: what has changed, to each page that listens, and never more than that.

A page that does not read is not written to: what it has missed becomes one change, whose size has a bound.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..backends.supervised.watch import Watch
from .jobs.table import document_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..backends.port import Summary
    from .jobs.index import Change

MOST_LISTENERS = 64
"""Pages that may listen at a time."""
_MOST_JOBS = 200  # changes kept for a page that does not read; with more it has to load the table again
_QUIET_SECONDS = 0.15  # in which changes that come together become one
_BEAT_SECONDS = 10.0  # after which a page is told that the console is there
_LOOK_SECONDS = 1.0  # between two looks at logs, for those of which the kernel tells nothing


class ListeningPage:
    """One page that listens."""

    def __init__(self) -> None:
        self._wake = asyncio.Event()
        self._changed: dict[str, Summary | None] = {}
        self._is_stale = False
        self._log = False

    def take(self, change: Change) -> None:
        """Note what has changed of the jobs."""
        self._changed.update((each.name, each) for each in change.changed)
        self._changed.update((name, None) for name in change.removed)
        if len(self._changed) > _MOST_JOBS:
            self._changed, self._is_stale = {}, True
        self._wake.set()

    def log_grew(self) -> None:
        """Note that the log of the job that the page shows has grown."""
        self._log = True
        self._wake.set()

    async def messages(self) -> AsyncIterator[bytes]:
        """What to send, as it comes, for as long as the page listens."""
        yield b"retry: 1000\nevent: hello\ndata: {}\n\n"
        while True:
            try:
                await asyncio.wait_for(self._wake.wait(), _BEAT_SECONDS)
            except asyncio.TimeoutError:
                yield b"event: beat\ndata: {}\n\n"
                continue
            await asyncio.sleep(_QUIET_SECONDS)
            self._wake.clear()
            for message in self._take():
                yield message

    def _take(self) -> Iterator[bytes]:
        changed, self._changed = self._changed, {}
        is_stale, self._is_stale = self._is_stale, False
        log, self._log = self._log, False
        if is_stale:
            yield _message("stale", {})
        elif changed:
            jobs = [document_of(each) for each in changed.values() if each is not None]
            yield _message(
                "jobs", {"changed": jobs, "removed": [name for name, each in changed.items() if each is None]}
            )
        if log:
            yield _message("log", {})


class Hub:
    """All pages that listen."""

    def __init__(self) -> None:
        self._listeners = set[ListeningPage]()

    @property
    def is_full(self) -> bool:
        """Whether no other page can listen."""
        return len(self._listeners) >= MOST_LISTENERS

    def tell(self, change: Change) -> None:
        """Tell all pages what has changed of the jobs; in the thread of the event loop."""
        for listener in self._listeners:
            listener.take(change)

    @contextmanager
    def listening(self, files: Sequence[Path]) -> Iterator[ListeningPage]:
        """A page listens, to the growth of these files too, for as long as the block runs."""
        listener = ListeningPage()
        self._listeners.add(listener)
        watch = Watch()
        task = asyncio.create_task(_keep_watching(watch, files, listener)) if files else None
        try:
            if files and watch.fileno() >= 0:
                asyncio.get_running_loop().add_reader(watch.fileno(), _noticed, watch, listener)
            yield listener
        finally:
            self._listeners.discard(listener)
            if task is not None:
                task.cancel()
            if watch.fileno() >= 0:
                asyncio.get_running_loop().remove_reader(watch.fileno())
            watch.close()


def _noticed(watch: Watch, listener: ListeningPage) -> None:
    watch.clear()
    listener.log_grew()


async def _keep_watching(watch: Watch, files: Sequence[Path], listener: ListeningPage) -> None:
    """Watch logs that appear, or replace an earlier attempt's, too, and look at those that another machine writes."""
    seen: dict[Path, tuple[int, int]] = {}
    while True:
        for path in files:
            known, found = seen.get(path), _identity(path)
            if found is not None and found != known:
                seen[path] = found
                if known is None or known[0] != found[0]:
                    watch.add(path)
                if found[1]:  # at the first look, too: the page may have looked before there was anything
                    listener.log_grew()
        await asyncio.sleep(_LOOK_SECONDS)


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a log from the one that took its place, and how long it is; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size


def _message(event: str, document: object) -> bytes:
    return f"event: {event}\ndata: {json.dumps(document)}\n\n".encode()
