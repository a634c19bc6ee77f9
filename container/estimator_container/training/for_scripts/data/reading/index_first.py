"""What a pipe brings, without the list of shards that comes first where `estimator data pack` has made them."""

from __future__ import annotations

import json
from typing import BinaryIO

from ..errors import DataError

MARK = b'"__kind__"'
MARK_BYTES = 64
"""Within which it stands in a list of shards."""
PIECE = 1 << 16


class PutBack:
    """A file that first gives what somebody has read of it already."""

    def __init__(self, begin: bytes, file: BinaryIO) -> None:
        self._begin, self._file = begin, file

    def read(self, size: int) -> bytes:
        """At most so many bytes; less only at the end."""
        if not self._begin:
            return self._file.read(size)
        given, self._begin = self._begin[:size], self._begin[size:]
        return given + self._file.read(size - len(given)) if len(given) < size else given


def without_index(file: BinaryIO) -> PutBack:
    """The same file from where the list of shards ends, if it begins with one. Raises DataError for half a list."""
    begin = file.read(MARK_BYTES)
    if not (begin.startswith(b"{") and MARK in begin):
        return PutBack(begin, file)
    while True:
        try:
            _, end = json.JSONDecoder().raw_decode(begin.decode("latin-1"))  # a character for each byte
            return PutBack(begin[end:].lstrip(b"\n"), file)
        except ValueError:
            piece = file.read(max(PIECE, len(begin)))  # each look begins anew
            if not piece:
                raise DataError("the pipe ends in the middle of the list of shards: write that again") from None
            begin += piece
