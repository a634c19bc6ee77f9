"""Frames written in a thread: a network file system may not answer for minutes, and a host must send heartbeats."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .frames import FrameWriter


class FramesAside:
    """Takes frames at once, and appends them in order, with the times at which they came."""

    def __init__(self, frames: FrameWriter) -> None:
        """Raises RuntimeError where there is no room for a thread."""
        self._frames = frames
        self._left: queue.SimpleQueue[tuple[int, int, bytes, int] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="frames", daemon=True)
        self._thread.start()

    def write(self, rank: int, stream: int, data: bytes) -> None:
        """Have `data` appended; what the disk does not take is lost."""
        self._left.put((rank, stream, data, time.time_ns()))

    def close(self) -> None:
        """Close the file once it has everything."""
        self._left.put(None)

    def finish(self, seconds: float) -> None:
        """Take no more, and wait so long for the file to have everything."""
        self.close()
        self._thread.join(seconds)

    def _write(self) -> None:
        while (frame := self._left.get()) is not None:
            with contextlib.suppress(OSError):
                self._frames.write(*frame)
        self._frames.close()
