"""The same thing done to many items by a few threads: in the order they come, until the first error."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterable, Sequence
from typing import Callable, Generic, Protocol, TypeVar

from .port import Progress


class Done(Protocol):
    """What became of an item."""

    @property
    def size(self) -> int:
        """In bytes."""


Item = TypeVar("Item")
Result = TypeVar("Result", bound=Done)

THREADS = 16  # waits for disks rather than for a processor
ANSWER_SECONDS = 0.2
"""After which a wait begins again. A signal that comes just before the interpreter waits for another thread does not
end that wait, so Ctrl-C would be heard only when the transfer is over."""


def in_threads(one: Callable[[Item], Result], items: Iterable[Item], progress: Progress | None) -> Sequence[Result]:
    """Apply `one` to each item; the results are in the order of the items. Raises the first error, at the end."""
    work = _Work(one, items, progress)
    threads = [
        threading.Thread(target=work.run, name="store", daemon=True)
        for _ in range(min(THREADS, operator.length_hint(items, THREADS)))
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(ANSWER_SECONDS)
    finally:
        work.stopped = True
    if work.error is not None:
        raise work.error
    return [result for _, result in sorted(work.done, key=lambda each: each[0])]


class _Work(Generic[Item, Result]):
    def __init__(self, one: Callable[[Item], Result], items: Iterable[Item], progress: Progress | None) -> None:
        self.done: list[tuple[int, Result]] = []
        self.error: BaseException | None = None
        self.stopped = False
        self._one = one
        self._items = enumerate(items)
        self._progress = progress
        self._bytes = 0
        self._lock = threading.Lock()

    def run(self) -> None:
        while not self.stopped:
            try:
                with self._lock:
                    number, item = next(self._items, (-1, None))
                if item is None:
                    return
                self._note(number, self._one(item))
            except BaseException as error:  # whatever it is, the caller is to see it
                self.error = self.error or error
                self.stopped = True

    def _note(self, number: int, result: Result) -> None:
        with self._lock:
            self.done.append((number, result))
            self._bytes += result.size
            if self._progress:
                self._progress(self._bytes, len(self.done))
