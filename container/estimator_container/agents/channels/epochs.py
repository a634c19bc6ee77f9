"""The objects that each host gets in each epoch of a piped channel, listed once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from ...storage import Object
from .channel import ChannelTask
from .shares import ordered, shares

T = TypeVar("T")


class Shared(Generic[T]):
    """An iterator that several threads go through, each from its start; what one got, no other waits for again."""

    def __init__(self, source: Iterable[T]) -> None:
        self._rest = iter(source)
        self._known: list[T] = []
        self._error: Exception | None = None
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[T]:
        at = 0
        while self._has(at):
            yield self._known[at]
            at += 1

    def _has(self, at: int) -> bool:
        with self._lock:
            if self._error is not None:
                raise self._error
            try:
                if at == len(self._known):
                    self._known.append(next(self._rest))
            except StopIteration:
                return False
            except Exception as error:
                self._error = error
                raise
            return True


class Epochs:
    """See the module; may be asked from several threads."""

    def __init__(self, channel: ChannelTask, objects: Iterable[Object], hosts: int) -> None:
        self._channel = channel
        self._objects = Shared(objects)
        self._hosts = hosts

    def objects(self, host: int, epoch: int) -> Iterable[Object]:
        """What the host with this number gets, in order. Raises StorageError, also while it is gone through."""
        seed = self._channel.seed
        if self._channel.is_sharded:
            return shares(list(self._objects), self._hosts, seed, epoch)[host]
        if seed is not None or self._channel.is_manifest:
            return ordered(list(self._objects), seed, epoch)
        return self._objects  # it is listed in this order, and can begin before the end is known
