"""One thread that waits for everything at once: sockets, timers, signals and the ends of children.

`asyncio` would do the same, but importing it costs more than the rest of the toolkit's start.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
Callback = Callable[[], object]
LONGEST_WAIT = 86400.0
"""Seconds of one wait: epoll and poll count milliseconds in 32 bits, so they take no 25 days; a job may take 28."""


class Timer:
    """A callback that is due at a time; `cancel` takes it back."""

    def __init__(self, callback: Callback) -> None:
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        """Do not call the callback any more; nothing happens if it has been called."""
        self.callback = None


class Loop:
    """Runs callbacks when their file descriptor, time or signal comes."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._signal_callbacks: dict[int, Callback] = {}
        self._from_threads: deque[Callback] = deque()
        self._wakeup_read, self._wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        self._selector.register(self._wakeup_read, selectors.EVENT_READ, self._wake_up)

    def on_readable(self, fd: int, callback: Callback) -> None:
        """Call back whenever a descriptor is readable, until `forget`."""
        self._selector.register(fd, selectors.EVENT_READ, callback)

    def on_readable_or_writable(self, fd: int, callback: Callback) -> None:
        """Call back whenever a descriptor is readable or writable, until `forget`."""
        self._selector.register(fd, selectors.EVENT_READ | selectors.EVENT_WRITE, callback)

    def forget(self, fd: int) -> None:
        """Stop watching a file descriptor, before it is closed; nothing happens if it is not watched."""
        if fd in self._selector.get_map():
            self._selector.unregister(fd)

    def on_signal(self, signum: int, callback: Callback) -> None:
        """Run `callback` in the loop, not in the middle of other code, when the signal comes."""
        self._signal_callbacks[signum] = callback
        signal.signal(signum, _only_wake_up)

    def from_thread(self, callback: Callback) -> None:
        """Have the loop run `callback`; for any thread."""
        self._from_threads.append(callback)
        with contextlib.suppress(BlockingIOError):  # the pipe is full, so the loop is woken anyway
            os.write(self._wakeup_write, b"\0")

    def aside(self, work: Callable[[], T], then: Callable[[T], object]) -> None:
        """Do in a thread what may wait for a disk or a network, and call `then` in the loop with what it returns.

        What it raises is raised in the loop, as if it had been done there. If no thread can be started, it is.
        """
        import threading  # most need none

        def run() -> None:
            try:
                found = work()
            except BaseException as error:
                self.from_thread(partial(_raise, error))
            else:
                self.from_thread(lambda: then(found))

        try:
            threading.Thread(target=run, name="aside", daemon=True).start()
        except RuntimeError:
            run()

    def after(self, seconds: float, callback: Callback) -> Timer:
        """Run `callback` in so many seconds."""
        timer = Timer(callback)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), timer))
        return timer

    def run_until(self, done: Callable[[], bool], seconds: float | None = None) -> None:
        """Handle events until `done()` is true, which is asked after every round, or so many seconds are over."""
        if seconds is not None:
            over: list[bool] = []
            timer = self.after(seconds, lambda: over.append(True))
            self.run_until(lambda: bool(over) or done())
            timer.cancel()
            return
        while not done():
            for key, _ in self._selector.select(self._seconds_to_next_timer()):
                # An earlier callback of this round may have forgotten this one.
                if self._selector.get_map().get(key.fd) is key:
                    key.data()
            self._run_due_timers()

    def _seconds_to_next_timer(self) -> float | None:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return min(max(0.0, self._timers[0][0] - time.monotonic()), LONGEST_WAIT) if self._timers else None

    def _run_due_timers(self) -> None:
        while self._timers and self._timers[0][0] <= time.monotonic():
            _, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()

    def _wake_up(self) -> None:
        for signum in set(os.read(self._wakeup_read, 4096)):
            if signum in self._signal_callbacks:
                self._signal_callbacks[signum]()
        while self._from_threads:
            self._from_threads.popleft()()


def _raise(error: BaseException) -> None:
    raise error


def _only_wake_up(signum: int, frame: Any) -> None:  # noqa: ANN401 - the frame type of `signal` is private
    """The wakeup descriptor tells the loop; a handler must exist for it to be written."""
