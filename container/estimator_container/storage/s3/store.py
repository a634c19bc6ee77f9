"""The store at `s3://bucket/prefix`, on Amazon S3 and on servers that speak its protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from ..errors import Conflict, NotFound, listed_but_missing
from ..location import Location, check_key, is_own
from ..port import Digest, Object, Progress, Store
from .bulk import AT_ONCE, Bulk
from .client import S3Client
from .condition import IfAbsent
from .engine import Engine, engine
from .retry import Patience, TransientFault
from .transfer import Passed, Transfer

_DELETES = 1000  # keys of one request; what S3 takes at most


def open_s3(location: Location, *, retry_seconds: float, stall_seconds: float) -> S3Store:
    """See `open_store`."""
    return S3Store(location, S3Client(location, Patience(retry_seconds, stall_seconds)), engine())


class S3Store(Store):
    """See the module."""

    def __init__(self, location: Location, client: S3Client, engine: Engine) -> None:
        self.uri = client.name(location.root)
        self._root = location.key_prefix
        self._client = client
        self._engine = engine
        self._transfer, self._condition = engine.run(self._on_engine(location))

    async def _on_engine(self, location: Location) -> tuple[Transfer, IfAbsent]:
        """What holds locks of the engine's loop has to be made there."""
        return Transfer(self._client, self._engine), IfAbsent(self._client, location.root)

    def list(self, prefix: str = "") -> Iterator[Object]:
        folder, slash, _ = prefix.rpartition("/")
        if slash:
            check_key(folder)
        pages = self._client.pages(self._root + folder, self._before(prefix) if not prefix.endswith("/") else "")
        empty: set[str] = set()
        last = ""
        while True:
            page = self._engine.run(_next(pages))
            if page is None:
                return
            doubtful = any(found.size == 0 for found in page)
            for found in self._engine.run(self._without_markers(page)) if doubtful else page:
                key = found.key[len(self._root) :]
                if not key.startswith(prefix):
                    if key > prefix:
                        return
                    if found.size > 0 and f"{key}/" == prefix:  # what makes no folder is data
                        raise listed_but_missing(self._client.name(found.key))
                    continue
                if found.size == 0:
                    # The client shows `a` and `a/` under one name.
                    if key in empty:
                        continue
                    empty.add(key)
                if key <= last:
                    self._check_key_of(found)
                last = key
                if not any(map(is_own, key.split("/"))):
                    yield Object(key, found.size, found.etag)

    def _before(self, prefix: str) -> str:
        """A key that sorts before all that start with `prefix`, and after most others of the same folder."""
        if not prefix or ord(prefix[-1]) - 1 < ord(" ") or 0xD800 <= ord(prefix[-1]) - 1 <= 0xDFFF:
            return ""
        return f"{self._root}{prefix[:-1]}{chr(ord(prefix[-1]) - 1)}\U0010ffff"

    def _check_key_of(self, found: Object) -> None:
        """Raises NotFound for an object whose key has a slash that the client has taken away: it is out of order."""
        there = self._engine.run(self._client.head(found.key))
        if there is None or there.etag != found.etag:
            raise listed_but_missing(self._client.name(found.key))

    async def _without_markers(self, page: Sequence[Object]) -> Sequence[Object]:
        """Without the empty objects that consoles make to show a folder: their keys end with a slash, which the
        client takes away, so that only asking for the key itself tells them from empty files."""
        limit = asyncio.Semaphore(AT_ONCE)

        async def checked(found: Object) -> Object | None:
            async with limit:
                if found.size > 0:
                    return found
                there = await self._client.head(found.key)
                return found if there is not None and there.etag == found.etag else None

        return [found for found in await asyncio.gather(*map(checked, page)) if found]

    def head(self, key: str) -> Object | None:
        found = self._engine.run(self._client.head(self._key(key)))
        return Object(key, found.size, found.etag) if found else None

    def read(self, key: str, range: tuple[int, int] | None = None) -> bytes:
        if range is not None and range[0] >= range[1]:
            range = (0, 0)
        full = self._key(key)
        if range == (0, 0):
            if self.head(key) is None:
                raise NotFound(f"{self._client.name(full)} does not exist: check the key")
            return b""
        found = self._engine.run(self._client.get(full, range))
        return bytes(found[1]) if found else b""

    def write(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        write = self._write_if_absent if if_absent else self._client.put
        return self._engine.run(write(self._key(key), data))

    async def _write_if_absent(self, key: str, data: bytes) -> str:
        await self._condition.require()
        faults = 0

        async def attempt() -> str:
            nonlocal faults
            try:
                return await self._client.put(key, data, if_absent=True, retry=False)
            except TransientFault:
                faults += 1
                raise
            except Conflict:
                # A write whose answer was lost has broken its own condition.
                if faults and (found := await self._client.get(key)) and bytes(found[1]) == data:
                    return found[0].etag
                raise

        return await self._client.patience.retry(attempt, self._client.name(key))

    def download(self, key: str | Object, path: str) -> Digest:
        return self._engine.run(self._download((key, path), _nobody))

    def upload(self, path: str, key: str) -> Digest:
        return self._engine.run(self._upload(path, key))

    def download_many(
        self, items: Iterable[tuple[str | Object, str]], *, progress: Progress | None = None
    ) -> Sequence[Digest]:
        return Bulk(self._engine, self._download, progress).run(items)

    def upload_many(self, items: Iterable[tuple[str, str]]) -> Sequence[Digest]:
        async def one(item: tuple[str, str], _: Passed) -> Digest:
            return await self._upload(*item)

        return Bulk(self._engine, one, None).run(items)

    def remove_unfinished(self, folder: str) -> None:
        """There is nothing that a listing would show."""

    def delete(self, keys: Iterable[str]) -> None:
        full = [self._key(key) for key in keys]
        for start in range(0, len(full), _DELETES):
            self._engine.run(self._client.delete(full[start : start + _DELETES]))

    async def _upload(self, path: str, key: str) -> Digest:
        return await self._transfer.upload(path, self._key(key))

    async def _download(self, item: tuple[str | Object, str], passed: Passed) -> Digest:
        key, path = item
        target = self._target(key)
        try:
            return await self._transfer.download(target, path, passed)
        except NotFound:
            if isinstance(target, Object) and target.etag:
                raise listed_but_missing(self._client.name(target.key)) from None
            raise

    def _key(self, key: str) -> str:
        return check_key(self._root + check_key(key))

    def _target(self, key: str | Object) -> Object | str:
        if isinstance(key, Object):
            return Object(self._key(key.key), key.size, key.etag)
        return self._key(key)


def _nobody(size: int) -> None:
    """Where nobody asked for progress."""


async def _next(pages: AsyncIterator[list[Object]]) -> list[Object] | None:
    async for page in pages:
        return page
    return None
