"""Conditional writes on servers that may not hold them: found out by trying, before anything depends on it.

Amazon S3 holds both. A server may answer a condition that it does not know by ignoring it, which would make every
writer the winner. Ceph's radosgw 16 compares `If-Match` with the etag without the quotes that HTTP puts around it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ..errors import Conflict, StorageError, Unsupported
from ..location import probe_name
from .client import Mode, S3Client

if TYPE_CHECKING:
    from typing import Literal

    Condition = Literal["if_absent", "if_match"]

_NO_SUCH_ETAG = "0" * 32


class Conditions:
    """What one server holds; asked once."""

    def __init__(self, client: S3Client, root: str) -> None:
        self._client = client
        self._root = root
        self._amazon = client.endpoint is None
        self._known: dict[Condition, bool] = {}
        self._quoted = True
        self._lock = asyncio.Lock()

    async def _holds(self, condition: Condition) -> bool:
        if self._amazon:
            return True
        async with self._lock:
            if condition not in self._known:
                self._known[condition] = await self._try(condition)
            return self._known[condition]

    async def mode(self, if_absent: bool, if_match: str | None) -> Mode:
        """How the client is told a condition. Raises Unsupported for one that the server does not hold."""
        condition: Condition = "if_absent" if if_absent else "if_match"
        if not await self._holds(condition):
            raise Unsupported(
                f"{self._client.name(self._root)} is on a server that ignores {condition}, so nothing was written: use "
                "a server that supports conditional writes, such as Amazon S3"
            )
        return "create" if if_absent else self._match(if_match or "", quoted=self._quoted)

    async def _try(self, condition: Condition) -> bool:
        key = "/".join(part for part in (self._root, probe_name()) if part)
        etag = await self._client.put(key, b"1")
        try:
            if condition == "if_absent":
                return not await self._writes(key, "create")
            if await self._writes(key, self._match(_NO_SUCH_ETAG, quoted=True)):
                return False
            for quoted in (True, False):
                if await self._writes(key, self._match(etag, quoted=quoted)):
                    self._quoted = quoted
                    # Unquoted it must still be compared, not ignored.
                    return not await self._writes(key, self._match(_NO_SUCH_ETAG, quoted=quoted))
            return False
        finally:
            with contextlib.suppress(StorageError):
                await self._client.delete([key])

    async def _writes(self, key: str, mode: Mode) -> bool:
        try:
            await self._client.put(key, b"1", mode)
        except Conflict:
            return False
        except StorageError as error:
            if type(error) is not StorageError:
                raise
            return False  # a server that refuses the header outright holds nothing either
        return True

    @staticmethod
    def _match(etag: str, *, quoted: bool) -> Mode:
        bare = etag.strip('"')
        return {"e_tag": f'"{bare}"' if quoted else bare}
