"""Files up and down: one request for small ones, parts side by side for large ones, hashed in order as they pass."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Callable, NamedTuple

from ..errors import Conflict, SourceChanged
from ..landing import Landing
from ..port import Digest, Object
from ..source import Buffers, UploadSource
from .client import S3Client
from .engine import Engine
from .retry import UploadGone

if TYPE_CHECKING:
    from hashlib import _Hash


class Pace(NamedTuple):
    """How large files are cut into requests."""

    part: int
    """Bytes of a part of an upload; two of them go as a whole."""
    range: int
    """Bytes of a download that one request asks for; they pass through memory in small pieces."""
    ranges: int
    """Of one download at the same time. They are hashed in order, so later ones wait in the file for the first."""
    at_once: int
    """Requests for parts and ranges of all files."""
    uploads: int
    """Files that are sent in parts at the same time, each with `at_once` parts in memory."""


AMAZON = Pace(part=8 << 20, range=16 << 20, ranges=8, at_once=8, uploads=3)
"""A connection brings some 85 MB a second (AWS, "Best practices design patterns: optimizing Amazon S3 performance")."""
ELSEWHERE = Pace(part=16 << 20, range=1 << 30, ranges=2, at_once=6, uploads=1)
"""A server that is near: a connection is as fast as the machine, and what comes in its order is hashed as it comes."""
WHOLE = 8 << 20  # bytes of a download that come in one piece, and are in memory until they are written
_MOST_PARTS = 10_000  # Amazon S3's limit for one upload
_INLINE = 1 << 20  # bytes; below this a write and a hash take less time than handing them to a thread

Passed = Callable[[int], None]
"""Told the bytes that have passed since it was last told."""


class Transfer:
    """The transfers of one store. Parts of all of them share a limit, which bounds the memory that they take."""

    def __init__(self, client: S3Client, engine: Engine) -> None:
        self._client = client
        self._engine = engine
        self._pace = ELSEWHERE if client.endpoint else AMAZON
        self._parts = asyncio.Semaphore(self._pace.at_once)
        self._large_uploads = asyncio.Semaphore(self._pace.uploads)

    async def download(self, target: Object | str, path: str, passed: Passed) -> Digest:
        """See Store.download; `target` has the bucket's key."""
        if isinstance(target, Object) and target.size > WHOLE:
            whole, data = target, b""  # its size is known, so no range waits for the first
        else:
            whole, data = await self._first(target)
        with Landing(path) as landing:
            hasher = hashlib.sha256()
            if whole.size > _INLINE:
                await self._engine.on_disk(landing.set_size, whole.size)
                await self._engine.computing(_land, landing, hasher, data)
            else:
                _land(landing, hasher, data)
            start = len(data)
            del data
            passed(start)
            if whole.size > start:
                await self._rest(whole, start, landing, hasher, passed)
            landing.commit()
        return Digest(whole.size, hasher.hexdigest())

    async def _first(self, target: Object | str) -> tuple[Object, bytes]:
        """The whole of a small object, or the first part of one that may be large, which tells how large it is."""
        key, etag = (target.key, target.etag or None) if isinstance(target, Object) else (target, None)
        try:
            found = await self._client.get(key, None if isinstance(target, Object) else (0, WHOLE), etag)
            if found is None:  # it is empty, which has no first part
                found = await self._client.get(key, None, etag)
        except Conflict:
            raise self._overwritten(key) from None
        assert found is not None  # without a range there is always an answer
        return found

    async def _rest(self, whole: Object, start: int, landing: Landing, hasher: _Hash, passed: Passed) -> None:
        """What is there from `start` on, in ranges that come side by side; all of one version."""
        ranges = _Ranges(start, whole.size, self._pace)
        etags = {whole.etag} if whole.etag else set()

        async def land(begin: int, data: bytes, at: int) -> None:
            if at == ranges.hashed:  # then nobody else hashes, for what comes next is here
                await self._engine.computing(_land, landing, hasher, data, at)
                ranges.hashed_to(at + len(data))
            else:
                await self._engine.on_disk(landing.write, data, at)
            ranges.come_to(begin, at + len(data))
            passed(len(data))

        async def fetch(begin: int, end: int) -> None:
            await ranges.ahead.acquire()
            async with self._parts:
                at, landed = begin, None
                try:
                    async for found, data in self._client.stream(whole.key, begin, end, whole.etag or None):
                        if found.size != whole.size or (etags and found.etag not in etags):
                            raise self._overwritten(whole.key)
                        etags.add(found.etag)
                        if landed is not None:  # it was on its way to the disk while this came
                            await landed
                        landed = asyncio.create_task(land(begin, data, at))
                        at += len(data)
                except Conflict:
                    raise self._overwritten(whole.key) from None
                finally:
                    if landed is not None:
                        await landed

        async def follow() -> None:
            """Hash what came before its turn; it is still in memory, as the system's copy of the file."""
            while ranges.hashed < whole.size:
                await ranges.more.wait()
                ranges.more.clear()
                if (come := ranges.come_without_gap()) > ranges.hashed:
                    await self._engine.computing(_hash, landing, hasher, ranges.hashed, come)
                    ranges.hashed_to(come)

        tasks = [asyncio.create_task(work) for work in (follow(), *(fetch(*each) for each in ranges.all))]
        try:
            await asyncio.gather(*tasks)
        finally:
            await self._engine.cancel(tasks)

    async def upload(self, path: str, key: str) -> Digest:
        """See Store.upload; `key` is the bucket's."""
        with UploadSource(path) as opened:
            if opened.size <= 2 * self._pace.part:
                return await self._upload_whole(opened, key)
            where = self._client.name(key)
            async with self._large_uploads:
                return await self._client.patience.retry(lambda: self._upload_parts(opened, key), where)

    async def _upload_whole(self, source: UploadSource, key: str) -> Digest:
        def read() -> tuple[memoryview, str]:
            data = source.read(0, source.size)
            source.check()
            return data, hashlib.sha256(data).hexdigest()

        if source.size <= _INLINE:
            data, sha256 = read()
            await self._client.put(key, data)
        else:
            async with self._parts:
                data, sha256 = await self._engine.on_disk(read)
                await self._client.put(key, data)
        return Digest(len(data), sha256)

    async def _upload_parts(self, source: UploadSource, key: str) -> Digest:
        part_size = max(self._pace.part, -(-source.size // _MOST_PARTS))
        hasher = hashlib.sha256()
        buffers = Buffers(part_size)
        hashing: asyncio.Task[None] | None = None

        async def hash_beside(data: memoryview) -> None:
            """Hash a part while it is sent, after the one before."""
            nonlocal hashing
            if hashing is not None:
                await hashing
            hashing = asyncio.create_task(self._engine.computing(hasher.update, data))

        async def parts() -> AsyncIterator[memoryview]:
            for offset in range(0, source.size, part_size):
                data = buffers.take(min(part_size, source.size - offset))
                await self._engine.on_disk(source.read_into, data, offset)
                await hash_beside(data)
                yield data
            source.check()  # before the upload is completed: an error here aborts it

        try:
            try:
                await self._client.put_parts(key, parts(), part_size, self._pace.at_once)
            finally:
                if hashing is not None:
                    await hashing
        except UploadGone:
            if not await self._holds(key, source.size, hasher.hexdigest()):
                raise
        return Digest(source.size, hasher.hexdigest())

    async def _holds(self, key: str, size: int, sha256: str) -> bool:
        """Whether the object is there with just these bytes."""
        found = await self._client.head(key)
        if found is None or found.size != size:
            return False
        hasher = hashlib.sha256()
        async for _, data in self._client.stream(key, 0, size, found.etag or None):
            await self._engine.computing(hasher.update, data)
        return hasher.hexdigest() == sha256

    def _overwritten(self, key: str) -> SourceChanged:
        return SourceChanged(f"{self._client.name(key)} was overwritten during the download: list it again")


class _Ranges:
    """How far the ranges of one object have come, and up to where they are hashed: in order, as they do not come."""

    def __init__(self, start: int, end: int, pace: Pace) -> None:
        self.all = [(begin, min(begin + pace.range, end)) for begin in range(start, end, pace.range)]
        self.ahead = asyncio.Semaphore(pace.ranges)
        """Ranges that may begin to come."""
        self.hashed = start
        self.more = asyncio.Event()
        self._come_to = {begin: begin for begin, _ in self.all}
        self._whole = 0

    def come_to(self, begin: int, at: int) -> None:
        """Say that the range that begins there has come so far."""
        self._come_to[begin] = at
        self.more.set()

    def come_without_gap(self) -> int:
        for begin, end in self.all[self._whole :]:
            if self._come_to[begin] < end:
                return self._come_to[begin]
        return self.all[-1][1]

    def hashed_to(self, at: int) -> None:
        """Say that all before has been hashed."""
        self.hashed = at
        while self._whole < len(self.all) and self.all[self._whole][1] <= at:
            self._whole += 1
            self.ahead.release()


def _hash(landing: Landing, hasher: _Hash, start: int, end: int) -> None:
    for block in landing.blocks(start, end):
        hasher.update(block)


def _land(landing: Landing, hasher: _Hash, data: bytes, offset: int = 0) -> None:
    landing.write(data, offset)
    hasher.update(data)
