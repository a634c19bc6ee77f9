"""Writes that an object under the same key refuses, on servers that may not hold that: found out by trying first.

Amazon S3 holds it. A server may answer a condition that it does not know by ignoring it, which would make every writer
the winner.
"""

from __future__ import annotations

import asyncio
import contextlib

from ..errors import Conflict, StorageError, Unsupported
from ..location import probe_name
from .client import S3Client


class IfAbsent:
    """Whether one server holds the condition; asked once."""

    def __init__(self, client: S3Client, root: str) -> None:
        self._client = client
        self._root = root
        self._holds = True if client.endpoint is None else None
        self._lock = asyncio.Lock()

    async def require(self) -> None:
        """Raises Unsupported if the server does not hold it."""
        async with self._lock:
            if self._holds is None:
                self._holds = await self._try()
        if not self._holds:
            raise Unsupported(
                f"{self._client.name(self._root)} is on a server that ignores if_absent, so nothing was written: use "
                "a server that supports conditional writes, such as Amazon S3"
            )

    async def _try(self) -> bool:
        key = "/".join(part for part in (self._root, probe_name()) if part)
        await self._client.put(key, b"1")
        try:
            await self._client.put(key, b"1", if_absent=True)
        except Conflict:
            return True
        except StorageError as error:
            if type(error) is not StorageError:
                raise
            # A server that refuses the header outright holds nothing either.
        finally:
            with contextlib.suppress(StorageError):
                await self._client.delete([key])
        return False
