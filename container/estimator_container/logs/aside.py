"""Frames written in a thread: a network file system may not answer for minutes, and a host must send heartbeats."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from .frames import FrameWriter

_Told = Union["tuple[int, int, bytes, int]", threading.Event, None]
"""A frame, or what is set once all before it are written; None at the end."""


class FramesAside:
    """Takes frames at once, and appends them in order, with the times at which they came."""

    def __init__(self, frames: FrameWriter) -> None:
        """Raises RuntimeError where there is no room for a thread."""
        self._frames = frames
        self._left: queue.SimpleQueue[_Told] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="frames", daemon=True).start()

    def write(self, rank: int, stream: int, data: bytes) -> None:
        """Have `data` appended; what the disk does not take is lost."""
        self._left.put((rank, stream, data, time.time_ns()))

    def flush(self, seconds: float) -> None:
        """Wait until the file has all that came before, at most so long."""
        are_written = threading.Event()
        self._left.put(are_written)
        are_written.wait(seconds)

    def close(self) -> None:
        """Close the file once it has everything."""
        self._left.put(None)

    def _write(self) -> None:
        while (told := self._left.get()) is not None:
            if isinstance(told, threading.Event):
                told.set()
            else:
                with contextlib.suppress(OSError):
                    self._frames.write(*told)
        with contextlib.suppress(OSError):
            self._frames.close()
