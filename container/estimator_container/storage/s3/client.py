"""The requests that the store is made of, each retried and its errors translated. All are coroutines of the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

from ..errors import Conflict, MissingDependency, NotFound, StorageError
from ..location import Location
from ..port import Object
from .aws_settings import settings
from .faults import has_code, status_of, translate
from .retry import LONGEST_PAUSE, Patience, TransientFault

PAGE = 1000  # keys; what S3 gives at most
CHUNK = 1 << 18  # bytes of a download that are handed on at once; hashed while a processor has them near, as more come

"""What a write does where there is an object: `overwrite`, `create` or the etag that is to be replaced."""


class S3Client:
    """Keys here are those of the bucket; the root of the store is put before them by its user."""

    def __init__(self, location: Location, patience: Patience) -> None:
        try:
            import obstore
            from obstore.store import S3Store
        except ImportError as error:
            raise MissingDependency(
                f"s3://{location.bucket} needs the package obstore ({error}): pip install 'estimator-container[s3]'"
            ) from None
        self.bucket = location.bucket
        self.patience = patience
        found = settings(self.name(location.root))
        self.endpoint = found.endpoint
        self._obstore: Any = obstore

        def make(retry: dict[str, Any]) -> S3Store:
            options: dict[str, Any] = {
                # The server refuses what did not arrive as it was sent, signed requests or not.
                "config": {**found.config, "checksum_algorithm": "SHA256"},
                "client_options": {
                    **found.client,
                    "connect_timeout": timedelta(seconds=min(5.0, patience.stall_seconds)),
                    "read_timeout": timedelta(seconds=patience.stall_seconds),
                    "timeout": timedelta(days=1),  # a slow transfer is no fault as long as it moves
                },
                "retry_config": retry,
            }
            if found.provider is not None:
                options["credential_provider"] = found.provider
            try:
                return S3Store(location.bucket, **options)
            except ValueError as error:
                raise StorageError(
                    f"{self.name(location.root)} cannot be opened ({error}): check the AWS settings, or "
                    "install a newer obstore"
                ) from None

        self._once = make({"max_retries": 0})
        # The parts of a multipart upload are out of our hands: the client retries each by itself.
        self._patient = make(
            {
                "max_retries": 1_000_000,
                "retry_timeout": timedelta(seconds=patience.retry_seconds),
                "backoff": {"max_backoff": timedelta(seconds=LONGEST_PAUSE)},
            }
        )

    def name(self, key: str) -> str:
        """An object, as errors name it."""
        return f"s3://{self.bucket}/{key}" if key else f"s3://{self.bucket}"

    async def get(
        self, key: str, range: tuple[int, int] | None = None, etag: str | None = None
    ) -> tuple[Object, bytes] | None:
        """The object, and its bytes or a range of them as a buffer; of the version `etag` only, where one is given.

        None where the object has no byte in the range.
        """
        options = _options(range, etag)

        async def attempt() -> tuple[Object, bytes] | None:
            try:
                result = await self._obstore.get_async(self._once, key, options=options)
                data = await result.bytes_async()
            except Exception as error:
                if status_of(error) == 416:
                    return None
                raise self._translated(error, key) from error
            found = _object(result.meta)
            start, end = range or (0, found.size)
            if len(data) != min(end, found.size) - start:
                raise TransientFault("its answer was cut short")
            return found, data

        return await self.patience.retry(attempt, self.name(key))

    async def stream(
        self, key: str, start: int, end: int, etag: str | None = None
    ) -> AsyncIterator[tuple[Object, bytes]]:
        """The bytes from `start` to `end` piece by piece, each with the object that it is of.

        After a fault it goes on where it was, with the version that it began with; Conflict when there is another by
        then, or the object has no such bytes.
        """
        stream: Any = None
        found = Object(key, 0, etag or "")

        async def attempt() -> bytes:
            nonlocal stream, found
            try:
                if stream is None:
                    options = _options((start, end), found.etag)
                    result = await self._obstore.get_async(self._once, key, options=options)
                    found, stream = _object(result.meta), result.stream(min_chunk_size=CHUNK)
                data: bytes = await stream.__anext__()
            except StopAsyncIteration:
                stream = None
                raise TransientFault("its answer was cut short") from None
            except Exception as error:
                stream = None
                if status_of(error) == 416:
                    raise Conflict(f"{self.name(key)} ends before byte {start}: it has been overwritten") from error
                raise self._translated(error, key) from error
            return data

        while start < end:
            data = await self.patience.retry(attempt, self.name(key))
            start += len(data)
            yield found, data

    async def head(self, key: str) -> Object | None:
        """The object of that key; None if there is none. Raises StorageError, also for a bucket that does not exist."""

        async def attempt() -> Object | None:
            try:
                return _object(await self._obstore.head_async(self._once, key))
            except Exception as error:
                if status_of(error) not in (301, 400, 403, 404) or has_code(error):
                    raise self._translated(error, key) from error
            # A missing bucket, a denial and bad credentials look alike to HEAD; the answer to GET has a body.
            try:
                return _object((await self._obstore.get_async(self._once, key, options={"range": (0, 1)})).meta)
            except Exception as error:
                translated = self._translated(error, key)
                if isinstance(translated, NotFound):
                    return None
                raise translated from error

        return await self.patience.retry(attempt, self.name(key))

    async def put(self, key: str, data: bytes | memoryview, *, if_absent: bool = False, retry: bool = True) -> str:
        """The new etag. Raises Conflict for a key that is not absent."""
        mode = "create" if if_absent else "overwrite"

        async def attempt() -> str:
            try:
                done = await self._obstore.put_async(self._once, key, data, mode=mode, use_multipart=False)
            except Exception as error:
                raise self._translated(error, key) from error
            return str(done["e_tag"])

        return await (self.patience.retry(attempt, self.name(key)) if retry else attempt())

    async def put_parts(self, key: str, parts: AsyncIterator[memoryview], part_size: int, at_once: int) -> None:
        """A multipart upload of what `parts` gives, which is aborted if that raises. Only parts are retried."""
        failed: list[BaseException] = []

        async def watched() -> AsyncIterator[memoryview]:
            try:
                async for part in parts:
                    yield part
            except StorageError as error:
                failed.append(error)
                raise

        try:
            await self._obstore.put_async(
                self._patient,
                key,
                watched(),
                use_multipart=True,
                chunk_size=part_size,
                max_concurrency=at_once,
            )
        except Exception as error:
            if failed:
                raise failed[0] from None
            raise self._translated(error, key) from error

    async def pages(self, folder: str, after: str) -> AsyncIterator[list[Object]]:
        """The objects below a folder, page by page; those after the key `after` if it is not empty."""
        stream: Any = None

        async def attempt() -> list[Object]:
            nonlocal stream
            try:
                if stream is None:
                    stream = self._obstore.list(self._once, folder or None, offset=after or None, chunk_size=PAGE)
                return [_object(meta) for meta in await stream.__anext__()]
            except StopAsyncIteration:
                return []
            except Exception as error:
                stream = None  # it goes no further: the next attempt begins a new one where this one had come to
                raise self._translated(error, folder) from error

        while page := await self.patience.retry(attempt, self.name(folder)):
            yield page
            after = page[-1].key

    async def delete(self, keys: list[str]) -> None:
        """Delete objects; missing ones are no error. Raises StorageError."""

        async def attempt() -> None:
            try:
                await self._obstore.delete_async(self._once, keys)
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise self._translated(error, keys[0]) from error
            except Exception as error:
                raise self._translated(error, keys[0]) from error

        await self.patience.retry(attempt, self.name(keys[0]))

    def _translated(self, error: Exception, key: str) -> StorageError:
        return error if isinstance(error, StorageError) else translate(error, self.name(key), self.bucket)


def _object(meta: Mapping[str, Any]) -> Object:
    return Object(meta["path"], meta["size"], meta["e_tag"] or "")


def _options(range: tuple[int, int] | None, etag: str | None) -> dict[str, Any]:
    """Of a request for bytes."""
    return {**({"range": range} if range else {}), **({"if_match": etag} if etag else {})}
