"""Write to a stream that may not take it: an encoding without the character, a full disk, a reader that has left."""

from __future__ import annotations

import contextlib
import io
import os
from typing import TextIO, Union

Stream = Union[TextIO, io.TextIOBase]
"""What a notebook or a test puts in the place of a file is of the second kind."""


def put(stream: Stream, what: str | bytes) -> None:
    """Write it whole and at once; characters that the stream's encoding does not have are escaped.

    What a file refuses is forgotten, except in encodings that begin with a mark, such as UTF-16: nothing of it stays
    in a buffer, where it would fail once more as the program ends.
    Bytes are written as they are where the stream is of a file, and else as the text that they are. Raises OSError,
    also for a stream that is closed.
    """
    try:
        raw = _raw(stream)
        if raw is None:
            text = what if isinstance(what, str) else what.decode("utf-8", "backslashreplace")
            stream.write(_encoded(stream, text).decode(stream.encoding) if stream.encoding else text)
            stream.flush()
            return
        stream.flush()
        _put_all(raw, what if isinstance(what, bytes) else _encoded(stream, what))
    except ValueError as error:  # of a closed stream
        import errno

        raise OSError(errno.EBADF, str(error)) from None


class Tolerant(io.TextIOBase):
    """Shows what can be shown on a stream, and drops the rest: who writes to it has more to do than to be seen."""

    def __init__(self, stream: Stream | None) -> None:
        """None is a stream that was closed before Python started."""
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Show text, or drop it if the stream does not accept it; always returns the length of the text."""
        if self._stream is not None:
            with contextlib.suppress(OSError):  # the next line is tried again: a disk may have room then
                put(self._stream, text)
        return len(text)

    def isatty(self) -> bool:
        """Whether the stream is a terminal; False for a closed one."""
        try:
            return self._stream is not None and self._stream.isatty()
        except ValueError:  # it is closed
            return False


def can_redraw(stream: Stream) -> bool:
    """Whether a line can be drawn anew on a stream: a terminal, but none that would show the control sequences.

    Such a one has the type `dumb`, or none (terminfo(5), "Glitches and Braindamage").
    """
    try:
        return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:  # it is closed
        return False


def _raw(stream: Stream) -> io.FileIO | None:
    """The file below a stream of Python's own; None for what a notebook or a test puts in its place."""
    buffer = stream.buffer if type(stream) is io.TextIOWrapper else None
    raw = buffer.raw if isinstance(buffer, io.BufferedWriter) else buffer  # `python -u` has no buffer between
    is_plain = "x".encode(stream.encoding) == b"x" if raw is not None else False  # with no mark at each beginning
    return raw if is_plain and isinstance(raw, io.FileIO) else None


def _encoded(stream: Stream, text: str) -> bytes:
    try:
        return text.encode(stream.encoding, stream.errors or "strict")
    except UnicodeError:
        return text.encode(stream.encoding, "backslashreplace")


def _put_all(raw: io.FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        count = raw.write(left)
        if count is None:  # somebody has made it non-blocking, and its reader is slow
            import select

            ready = select.poll()
            ready.register(raw, select.POLLOUT)
            ready.poll()
        else:
            left = left[count:]
