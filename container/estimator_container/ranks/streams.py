"""What a rank writes: threads move it from its pipes into frames.

The wrapper imports this once the script has started.
"""

from __future__ import annotations

import _thread
import fcntl
import os
import time

from ..logs.frames import STDERR, STDOUT, FrameWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # as the wrapper has it

PIPE_SIZE = 1 << 18  # bytes; what a pipe holds by default is gone before a rank's turn on the CPU is
LITTLE = 1 << 15  # bytes; who writes less at a time and without a pause writes line by line
RUSH_SECONDS = 0.001  # between two reads: then the rank writes without a pause
NAP_SECONDS, LONGEST_NAP = 0.0003, 0.002  # in such a rush each is twice the last
TAIL_SIZE = 1 << 14  # bytes of stderr that go into the report of a failure
STALL_WORDS = b"Missing ranks:"  # of Horovod's stall inspector; see `horovod_stalls`
_F_SETPIPE_SZ, _F_GETPIPE_SZ = 1031, 1032  # <fcntl.h>; Python has the names since 3.10
_FIONREAD = 0x541B  # <asm/ioctls.h>; `termios` has it, and nothing else that is needed here


class Streams:
    """The standard output and the standard error of one rank."""

    def __init__(self, frames: FrameWriter, rank: int, pipes: dict[int, int], waker: int, tail: bytes) -> None:
        """`pipes` are the ends to read, each with its stream; `waker` is written to when there are news.

        `tail` is what its stderr has had already.
        """
        self.tail = tail
        """The end of what it wrote to its stderr."""
        self.stalls = False
        """Whether Horovod has told of a stall there; whoever sees it takes it back."""
        self.not_stored: Exception | None = None
        """What kept a stream from being stored."""
        self._frames = frames
        self._rank = rank
        self._pipes = pipes
        self._waker = waker
        self._movers: list[tuple[int, _thread.LockType]] = []
        self._forever = _thread.allocate_lock()
        self._forever.acquire()
        self._stopping = False
        self._stdout_stored = _thread.allocate_lock()  # is let go of whenever a piece has been
        for pipe in pipes:
            _enlarge(pipe)

    def move(self) -> None:
        """Begin to store what comes.

        Once somebody has polled a pipe, the kernel takes a lock to look for whom to wake at every write to it, which
        makes a line dearer for the script by a tenth. So the pipes are read without.
        """
        for fd, stream in self._pipes.items():
            has_stopped = _thread.allocate_lock()
            has_stopped.acquire()
            self._movers.append((_thread.start_new_thread(self._move, (fd, stream, has_stopped)), has_stopped))

    def _move(self, fd: int, stream: int, has_stopped: _thread.LockType) -> None:
        """In a thread of its own: store what a stream gives, until it ends or `stop` has it stop."""
        last_read = nap = 0.0
        try:
            while not self._stopping and (data := os.read(fd, PIPE_SIZE)):
                if stream == STDERR:
                    self._let_stdout_go_first()
                self._keep(stream, data)
                if stream == STDOUT and self._stdout_stored.locked():
                    self._stdout_stored.release()
                now = time.monotonic()
                if len(data) < LITTLE and now - last_read < RUSH_SECONDS:
                    nap = min(2 * nap, LONGEST_NAP) or NAP_SECONDS
                    time.sleep(nap)  # or the two would take turns on a CPU for every line
                    now += nap
                else:
                    nap = 0.0
                last_read = now
        except BlockingIOError:
            pass  # there is nothing for now, and it does not wait any more
        except Exception as error:  # the rank would wait for ever with nobody to read what it writes
            self.not_stored = error
            os.write(self._waker, b"\0")
        finally:
            has_stopped.release()
            self._forever.acquire()  # its id must stay its own, for it may be signalled at this very moment

    def _let_stdout_go_first(self) -> None:
        """What was written there before, as before a traceback, may wait for the end of a nap."""
        (stdout,) = (fd for fd, stream in self._pipes.items() if stream == STDOUT)
        self._stdout_stored.acquire(False)
        if _holds_bytes(stdout):
            self._stdout_stored.acquire(timeout=2 * LONGEST_NAP)

    def stop(self) -> None:
        """From now on the pipes are this thread's. Raises what kept a stream from being stored."""
        self._stopping = True
        for fd in self._pipes:
            os.set_blocking(fd, False)
        for (fd, stream), (thread, has_stopped) in zip(self._pipes.items(), self._movers):
            signal.pthread_kill(thread, signal.SIGCHLD)  # a read that waits begins again, and waits no more
            has_stopped.acquire()
            self._drain(fd, stream)
        if self.not_stored is not None:
            raise self.not_stored

    def _keep(self, stream: int, data: bytes) -> None:
        if data:
            self._frames.write(self._rank, stream, data)
        if stream == STDERR:
            self.tail = (self.tail + data)[-TAIL_SIZE:]
            if len(data) < LITTLE and STALL_WORDS in data:
                self.stalls = True
                os.write(self._waker, b"\0")  # the thread that waits there tells

    def drain(self) -> None:
        """Take what is still in the pipes."""
        for fd, stream in self._pipes.items():
            self._drain(fd, stream)

    def _drain(self, fd: int, stream: int) -> None:
        """No more than the pipe holds: what the rank has left running may go on to fill it."""
        left = fcntl.fcntl(fd, _F_GETPIPE_SZ)
        while left > 0:
            try:
                data = os.read(fd, left)
            except BlockingIOError:
                return
            if not data:
                return
            left -= len(data)
            self._keep(stream, data)


def _enlarge(pipe: int) -> None:
    try:  # noqa: SIM105 - contextlib would cost each rank a millisecond
        fcntl.fcntl(pipe, _F_SETPIPE_SZ, PIPE_SIZE)
    except OSError:  # this user has as many pages in pipes as one may have
        pass


def _holds_bytes(pipe: int) -> bool:
    return any(fcntl.ioctl(pipe, _FIONREAD, b"\0\0\0\0"))
