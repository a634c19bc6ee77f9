"""Reading ahead of whoever takes what was read, with a bound on what is held."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from estimator_container.storage.parallel import ANSWER_SECONDS
from estimator_container.training import clock_of_rank
from estimator_container.training.boundaries.timed import taking

T = TypeVar("T")


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Ahead(Generic[T]):
    """Goes through an iterator in a thread. At most `count` pieces are held, and `limit` bytes of them: always one.

    Close it, or go through it to its end: the thread ends then.
    """

    def __init__(self, source: Iterator[T], count: int, limit: int, size: Callable[[T], int]) -> None:
        self._source, self._count, self._limit, self._size = source, count, limit, size
        self._held: deque[tuple[T | _End, int]] = deque()
        self._bytes = 0
        self._closed = False
        self._changed = threading.Condition()
        threading.Thread(target=self._read, name="estimator-data", daemon=True).start()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._changed:
            while not self._held:
                self._changed.wait(ANSWER_SECONDS)
            piece, size = self._held[0]
            if isinstance(piece, _End):  # which stays
                if piece.error is not None:
                    raise piece.error
                raise StopIteration
            self._held.popleft()
            self._bytes -= size
            self._changed.notify_all()
            return piece

    def close(self) -> None:
        """Read no more: the thread ends with the piece that it is at, which may wait for a store or a pipe."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _read(self) -> None:
        try:
            for piece in self._source:
                if not self._hold(piece, self._size(piece)):
                    break
            end = _End(None)
        except BaseException as error:  # whoever takes the pieces is told
            end = _End(error)
        with self._changed:
            self._held.append((end, 0))
            self._changed.notify_all()

    def _hold(self, piece: T, size: int) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._held or self._has_room(size))
            if self._closed:
                return False
            self._held.append((piece, size))
            self._bytes += size
            self._changed.notify_all()
            return True

    def _has_room(self, size: int) -> bool:
        return len(self._held) < self._count and self._bytes + size <= self._limit


class CountedWaiting:
    """Who counts how long a script waits for what it takes."""

    seconds_waited = 0.0
    """How long the script has waited for batches so far."""

    def waited(self, pieces: Iterable[T], count: int | None = None) -> Iterator[T]:
        """The same, where waiting for each counts, for the doctor, too; `count` is how many they are, if known."""
        source, clock = iter(pieces), clock_of_rank()
        take = source.__next__ if clock is None else taking(source, clock.account, "Dataset", count)
        while True:
            asked = time.monotonic()
            try:
                piece = take()
            except StopIteration:
                return
            finally:
                self.seconds_waited += time.monotonic() - asked
            yield piece


def size_of(piece: Any) -> int:  # noqa: ANN401 - what a script made of its samples
    """About how many bytes something holds: of bytes, text, arrays and tensors, and what holds those."""
    if isinstance(piece, dict):
        return sum(map(size_of, piece.values()))
    if isinstance(piece, (list, tuple)):
        return sum(map(size_of, piece))
    if isinstance(piece, (bytes, bytearray, str)):
        return len(piece)
    known = getattr(piece, "nbytes", None)
    return known if isinstance(known, int) else 32  # bytes: a number and the like
