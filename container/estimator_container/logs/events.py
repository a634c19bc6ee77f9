"""What the toolkit says of itself: events in the frame file, and the words of the programs it runs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..runtime.loop import Loop
from .frames import EVENT, NO_RANK, TOOLKIT, FrameWriter

if TYPE_CHECKING:
    from re import Pattern

    from ..contract.event_decoding import QuietEvent
    from ..contract.events import SaidEvent
    from .aside import FramesAside

TAIL_SIZE = 1 << 14  # bytes of a program's last words that can go into a verdict


class EventLog:
    """Writes this host's events and the toolkit's own lines, in order, to its frame file.

    A disk that does not take them ends nothing: what a job is worth are its ranks, and their wrappers see it too.
    """

    def __init__(self, frames: FrameWriter | FramesAside) -> None:
        self._frames = frames

    def go_on_in(self, frames: FrameWriter | FramesAside) -> None:
        """Write to another file from now on."""
        self._frames.close()
        self._frames = frames

    def flush(self, seconds: float) -> None:
        """Wait until the file has all of them, at most so long."""
        self._frames.flush(seconds)

    def emit(self, event: QuietEvent) -> None:
        """Write an event down."""
        self._write(EVENT, event.to_json().encode())

    def tell(self, event: SaidEvent, words: str) -> None:
        """Write an event down that the log has in words too."""
        self.say(words)
        self._write(EVENT, event.to_json().encode())

    def say(self, text: str) -> None:
        """A line of the toolkit's own."""
        self._write(TOOLKIT, text.encode("utf-8", "replace") + b"\n")

    def pass_on(self, data: bytes) -> None:
        """Bytes that a program of the toolkit's wrote."""
        self._write(TOOLKIT, data)

    def _write(self, stream: int, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._frames.write(NO_RANK, stream, data)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Frame a phase by an event at its start and one at its end, with its seconds."""
        from ..contract.events import PhaseEnded, PhaseStarted  # not for agents: they have no phases

        started = time.monotonic()
        self.emit(PhaseStarted(name))
        yield
        self.emit(PhaseEnded(name, round(time.monotonic() - started, 4)))


class ProgramOutput:
    """Reads what a program of the toolkit's writes, keeps its last words, and passes it on."""

    def __init__(self, loop: Loop, events: EventLog, idle: Pattern[bytes] | None = None) -> None:
        """`idle` are lines that mean nothing to anybody, so they are left out; each comes by one write."""
        self._loop = loop
        self._events = events
        self._idle = idle
        self._tail = b""
        self._read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read_fd, False)
        loop.on_readable(self._read_fd, self._pump)

    def started(self) -> None:
        """The program has its own copy of the pipe's end."""
        os.close(self.write_fd)

    def finish(self) -> str:
        """Take what is left, stop reading, and return the last words."""
        while self._read_fd >= 0 and self._pump():
            pass
        self._close()
        return self._tail.decode("utf-8", "replace")

    def _pump(self) -> bool:
        try:
            data = os.read(self._read_fd, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self._close()
            return False
        if self._idle is not None:
            data = self._idle.sub(b"", data)
        if data:
            self._events.pass_on(data)
        self._tail = (self._tail + data)[-TAIL_SIZE:]
        return True

    def _close(self) -> None:
        if self._read_fd >= 0:
            self._loop.forget(self._read_fd)
            os.close(self._read_fd)
            self._read_fd = -1
