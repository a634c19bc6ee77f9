"""Message connections of a host: to its own ranks over a Unix socket, to other hosts over TCP."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator

from .loop import Loop
from .wire import MAX_MESSAGE, BadMessage, Unpacker, pack

ACCEPT_AGAIN_SECONDS = 0.1  # after which a listener tries again that could not accept

OnMessage = Callable[["Link", "list[str]"], None]
OnClose = Callable[["Link"], None]


class Link:
    """A connected stream socket that carries messages both ways without ever blocking."""

    def __init__(
        self, loop: Loop, sock: socket.socket, on_message: OnMessage, on_close: OnClose, limit: int = MAX_MESSAGE
    ) -> None:
        self.peer = ""
        """Who is at the other end, once that is known."""
        self.on_message = on_message
        self.on_close = on_close
        self._loop = loop
        self._sock = sock
        self._unpacker = Unpacker(limit)
        self._unsent = bytearray()
        self._waits_to_write = False
        sock.setblocking(False)
        loop.on_readable(sock.fileno(), self._read)

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        return self._sock.fileno() < 0

    def allow_messages_of(self, limit: int) -> None:
        """Change the size in bytes above which a message closes the link."""
        self._unpacker.limit = limit

    def send(self, *fields: str) -> None:
        """Send a message; what the kernel does not take now follows as soon as it does."""
        if self.closed:
            return
        self._unsent += pack(fields)
        if not self._waits_to_write:
            self._write()

    def close(self) -> None:
        """Close without calling `on_close`."""
        if not self.closed:
            self._loop.forget(self._sock.fileno())
            self._sock.close()

    def _read(self) -> None:
        try:
            data = self._sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            for message in self._unpacker.feed(data):
                self.on_message(self, message)
                if self.closed:
                    return
        except BadMessage:
            data = b""
        if not data:
            self._lost()

    def _write(self) -> None:
        try:
            sent = self._sock.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except (BrokenPipeError, ConnectionResetError):
            sent = len(self._unsent)  # nobody takes it; what the other end has said last is read before its end
        except OSError:
            self._lost()
            return
        del self._unsent[:sent]
        if bool(self._unsent) != self._waits_to_write:
            self._waits_to_write = bool(self._unsent)
            self._watch()

    def _write_and_read(self) -> None:
        self._write()
        if not self.closed:
            self._read()

    def _watch(self) -> None:
        fd = self._sock.fileno()
        self._loop.forget(fd)
        if self._waits_to_write:
            # Reading goes on, or two ends that both have much to say would wait for each other for ever.
            self._loop.on_readable_or_writable(fd, self._write_and_read)
        else:
            self._loop.on_readable(fd, self._read)

    def _lost(self) -> None:
        self.close()
        self.on_close(self)


class Listener:
    """Accepts connections and hands them out."""

    def __init__(self, loop: Loop, sock: socket.socket, on_link: Callable[[socket.socket], None]) -> None:
        self._loop = loop
        self._sock = sock
        self._on_link = on_link
        sock.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        if self._sock.fileno() >= 0:
            self._loop.on_readable(self._sock.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            sock, _ = self._sock.accept()
        except (BlockingIOError, ConnectionError):
            return  # whoever it was has gone
        except OSError:
            # No descriptor is free, or no memory. Who connects still waits, so the loop would come here at once again.
            self._loop.forget(self._sock.fileno())
            self._loop.after(ACCEPT_AGAIN_SECONDS, self._listen)
            return
        self._on_link(sock)

    def close(self) -> None:
        """Stop listening; may be called more than once."""
        if self._sock.fileno() >= 0:
            self._loop.forget(self._sock.fileno())
            self._sock.close()


def listen_unix(path: str) -> socket.socket:
    """A listening Unix socket at `path`, which must be in a folder that only this user can enter."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(path)
    sock.listen(128)
    return sock


@contextlib.contextmanager
def short_path(path: str) -> Iterator[str]:
    """The same file under a path of a few bytes: that of a Unix socket has at most 107 (unix(7)).

    Raises OSError where its folder cannot be opened.
    """
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


def connect_unix(path: str) -> socket.socket:
    """A socket that is connected to whoever listens at `path`. Raises OSError where nobody does."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock
