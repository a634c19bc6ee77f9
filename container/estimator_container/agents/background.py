"""A call that goes on in the background: a store's answers take their time, and few depend on each other."""

from __future__ import annotations

import threading
from typing import Callable, Generic, TypeVar

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """Begins at once, in a thread. One whose result nobody asks for is of no consequence, whatever it raises."""

    def __init__(self, call: Callable[[], T], on_end: Callable[[BackgroundCall[T]], None] | None = None) -> None:
        """`on_end` is called in the thread, when there is a result."""
        self._call = call
        self._on_end = on_end
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="background", daemon=True)
        self._thread.start()

    def result(self) -> T:
        """Wait for the call's end, and return its result. Raises what the call raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._call())
        except BaseException as error:  # whatever it is, the caller is to see it
            self._error = error
        if self._on_end is not None:
            self._on_end(self)
