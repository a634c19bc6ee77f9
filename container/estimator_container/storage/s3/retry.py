"""Faults that ought to pass are retried, with growing pauses, until a deadline."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Callable, TypeVar

from ..errors import StorageError, StoreUnavailable

T = TypeVar("T")

FIRST_PAUSE = 0.1  # seconds
LONGEST_PAUSE = 5.0


class TransientFault(StorageError):
    """A fault that ought to pass: a connection cut, a server overloaded, an answer cut short."""

    exhausted = False
    """Whether it has been retried already for as long as was asked."""


class UploadGone(TransientFault):
    """The server knows no such upload in parts: it dropped it, or completed it, and the answer to that was lost."""


@dataclass(frozen=True)
class Patience:
    """How long faults are borne."""

    retry_seconds: float
    """From the first fault of a row to the last attempt."""
    stall_seconds: float
    """How long a connection may say nothing before that is a fault."""

    async def retry(self, attempt: Callable[[], Awaitable[T]], where: str) -> T:
        """The result of the first attempt that has one. Raises StoreUnavailable about `where` after the deadline."""
        clock = asyncio.get_running_loop().time
        deadline = float("inf")
        pause = FIRST_PAUSE
        while True:
            try:
                return await attempt()
            except TransientFault as error:
                fault = error
            deadline = min(deadline, clock() + self.retry_seconds)
            if fault.exhausted or clock() + pause > deadline:
                raise StoreUnavailable(
                    f"{where} could not be reached for {self.retry_seconds:g} s ({fault}): check the network, the "
                    f"endpoint and the state of the store, and try again"
                ) from fault
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)
