"""Feed the FIFOs of a piped channel: `<channel>_<epoch>` on each host, as long as somebody asks for the next."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
from collections.abc import Generator, Iterator

from ...storage import StorageError, Store
from .channel import ChannelError, ChannelTask
from .epochs import Epochs
from .stream import stream

_F_SETPIPE_SZ = 1031  # as in `ranks.streams`, which no agent loads
_PIPE_SIZE = 1 << 20  # bytes


class Pipe:
    """The FIFOs of one channel on one host. `feed` never returns, and is for a thread of its own."""

    def __init__(self, channel: ChannelTask, store: Store, epochs: Epochs, host: int, folder: str) -> None:
        self._channel = channel
        self._store = store
        self._epochs = epochs
        self._host = host
        self._folder = folder

    def make(self, epoch: int) -> None:
        """Make the FIFO of an epoch. Raises OSError."""
        os.makedirs(self._folder, exist_ok=True)
        os.mkfifo(self._path(epoch), 0o600)

    def feed(self) -> None:
        """Feed one epoch after the other; the next one's FIFO is there before the script can ask for it.

        Raises StorageError, ChannelError or OSError, and then leaves open what it writes to: a reader must not take
        the middle of an epoch for its end.
        """
        for epoch in itertools.count():
            fd, data = self._opened(epoch)
            with contextlib.closing(data):
                self.make(epoch + 1)
                _write_all(fd, data)
                os.close(fd)
            os.unlink(self._path(epoch))

    def _opened(self, epoch: int) -> tuple[int, Generator[bytes, None, None]]:
        """The FIFO of an epoch when somebody reads, and the data, which is asked for earlier.

        It may be that nobody ever reads a later epoch, so one that cannot be had is no failure before somebody does.
        """
        data = None
        try:
            data = self._begun(epoch)
        except (StorageError, ChannelError, OSError):
            if epoch == 0:
                raise
        fd = os.open(self._path(epoch), os.O_WRONLY)
        return fd, data or self._begun(epoch)

    def _begun(self, epoch: int) -> Generator[bytes, None, None]:
        return _begun(stream(self._store, self._epochs.objects(self._host, epoch), self._channel))

    def _path(self, epoch: int) -> str:
        return os.path.join(self._folder, f"{self._channel.name}_{epoch}")


def _begun(data: Iterator[bytes]) -> Generator[bytes, None, None]:
    """The same; the first piece is there, and others are on their way."""
    first = next(data, None)

    def all_of_it() -> Generator[bytes, None, None]:
        if first is not None:
            yield first
            yield from data

    return all_of_it()


def _write_all(fd: int, data: Iterator[bytes]) -> None:
    """A reader that has had enough is no error: then the epoch is over."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_SIZE)
    for piece in data:
        view = memoryview(piece)
        try:
            while view:
                view = view[os.write(fd, view) :]
        except BrokenPipeError:
            return
