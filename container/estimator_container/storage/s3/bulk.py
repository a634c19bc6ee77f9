"""Many transfers on the engine: a few dozen at once, fed from the caller's iterator, ended by the first error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Iterable
from itertools import islice
from typing import Callable, Generic, Optional, TypeVar

from ..parallel import ANSWER_SECONDS
from ..port import Digest, Progress
from .engine import Engine
from .transfer import Passed

Item = TypeVar("Item")

AT_ONCE = 32
_BATCH = 32  # items; the loop is woken once for so many
_BATCHES_AHEAD = 4


class Bulk(Generic[Item]):
    """One call of `download_many` or `upload_many`."""

    def __init__(
        self, engine: Engine, one: Callable[[Item, Passed], Awaitable[Digest]], progress: Progress | None
    ) -> None:
        self._engine = engine
        self._one = one
        self._progress = progress
        self._bytes = 0
        self._digests: dict[int, Digest] = {}
        self._room = threading.Semaphore(_BATCHES_AHEAD)
        self._waiting: asyncio.Queue[Optional[tuple[int, Item]]]

    def run(self, items: Iterable[Item]) -> list[Digest]:
        """The digests in the order of the items, which are made in this thread: making them may use the engine too."""
        self._engine.run(self._prepare())
        work = self._engine.start(self._work())
        work.on_end(self._room.release)
        numbered = enumerate(items)
        try:
            while batch := list(islice(numbered, _BATCH)):
                while not self._room.acquire(timeout=ANSWER_SECONDS):
                    pass
                if work.ended:
                    break
                self._engine.loop.call_soon_threadsafe(self._add, batch)
            self._engine.loop.call_soon_threadsafe(self._waiting.put_nowait, None)
        except BaseException:
            work.cancel()
            raise
        work.result()
        return [self._digests[number] for number in sorted(self._digests)]

    async def _prepare(self) -> None:
        self._waiting = asyncio.Queue()

    def _add(self, batch: list[tuple[int, Item]]) -> None:
        for item in batch:
            self._waiting.put_nowait(item)

    async def _work(self) -> None:
        workers = [asyncio.create_task(self._worker()) for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*workers)
        finally:
            await self._engine.cancel(workers)

    async def _worker(self) -> None:
        while True:
            entry = await self._waiting.get()
            if entry is None:
                self._waiting.put_nowait(None)  # for the next worker
                return
            number, item = entry
            if number % _BATCH == 0:
                self._room.release()
            self._digests[number] = await self._one(item, self._passed)
            self._passed(0)

    def _passed(self, size: int) -> None:
        self._bytes += size
        if self._progress:
            self._progress(self._bytes, len(self._digests))
