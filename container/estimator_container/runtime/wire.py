"""Messages between the processes of one job: a length, then fields separated by NUL.

Every field is something that could stand in an argument or an environment variable, so none holds a
NUL, and no parser is needed that costs a rank its start-up time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

_LENGTH = struct.Struct("<I")
MAX_MESSAGE = 16 * 1024 * 1024  # bytes; an environment and an argument list fit many times over


class BadMessage(Exception):
    """The other end sent what this protocol does not allow."""


def pack(fields: Iterable[str]) -> bytes:
    """One message as bytes. Raises ValueError for a field with a NUL in it, and for no field at all."""
    texts = [field.encode("utf-8", "surrogateescape") for field in fields]
    if not texts:
        raise ValueError("a message needs at least one field")
    if any(b"\0" in text for text in texts):
        raise ValueError("a field of a message must not contain a NUL")
    body = b"\0".join(texts)
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Turns a stream of bytes into messages."""

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self.limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[list[str]]:
        """The messages that `data` completes, each made when it is asked for.

        So a reader may raise the limit between two of them. Raises BadMessage for one longer than the limit.
        """
        self._buffer += data
        return self._complete()

    def _complete(self) -> Iterator[list[str]]:
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > self.limit:
                raise BadMessage(f"a message of {length} bytes; at most {self.limit} are allowed")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield body.decode("utf-8", "surrogateescape").split("\0")
