"""Write a file on a machine: in pieces of which a few are under way, so that the delay of a connection is met once."""

from __future__ import annotations

from .connection import Session

PIECE = 4 << 20
"""Bytes that are sent at once."""
UNDER_WAY = 4
"""Pieces that are not answered yet, at most: what the other end refuses is soon noticed."""


class Sending:
    """One file in the code's folder of a machine's cache, as `tarfile` writes to one.

    Nothing else uses the session meanwhile, nor after an error.
    """

    def __init__(self, session: Session, name: str, stays: bool = True) -> None:
        """`stays` is whether the file outlives the session."""
        self._session = session
        self._name = name
        self._stays = stays
        self._waiting = bytearray()
        self._begins = True
        self._unanswered = 0

    def write(self, data: bytes) -> int:
        """Send more. Raises BackendError."""
        self._waiting += data
        while len(self._waiting) >= PIECE:
            self._send(bytes(self._waiting[:PIECE]), ends=False)
            del self._waiting[:PIECE]
        return len(data)

    def finish(self) -> None:
        """Send the rest, and wait until the file is there. Raises BackendError."""
        self._send(bytes(self._waiting), ends=True)
        self._hear(0)

    def _send(self, data: bytes, ends: bool) -> None:
        self._session.send("put", data, name=self._name, begins=self._begins, ends=ends, stays=self._stays)
        self._begins = False
        self._unanswered += 1
        self._hear(UNDER_WAY)

    def _hear(self, unanswered: int) -> None:
        """Wait for answers until so many are left."""
        while self._unanswered > unanswered:
            self._unanswered -= 1
            self._session.receive()
