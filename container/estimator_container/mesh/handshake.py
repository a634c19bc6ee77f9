"""How two hosts of a job prove to each other that they hold the job's secret, and seal what follows.

The worker sends its name and a random number, the first host answers with a number of its own and a
code over both, and the worker answers with its code. The two numbers and the secret give a session key;
every later message carries a code over its direction, its place in the sequence and its fields, so
none can be forged, repeated, dropped or sent back. Nothing is encrypted: no message holds a secret.
"""

from __future__ import annotations

import hashlib
import hmac
import os

NONCE_BYTES = 32


def new_nonce() -> str:
    """A new random number that is used once, in hex."""
    return os.urandom(NONCE_BYTES).hex()


def code(secret: bytes, *fields: str) -> str:
    """A keyed code over fields, each with its length, so that no two lists give the same text."""
    text = "".join(f"{len(field)}:{field}" for field in fields)
    return hmac.new(secret, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def same(a: str, b: str) -> bool:
    """Compare two codes in a time that tells nothing of where they differ."""
    return hmac.compare_digest(a.encode("utf-8", "replace"), b.encode("utf-8", "replace"))


class Seal:
    """Adds a code to outgoing messages and checks those of incoming ones."""

    def __init__(self, key: bytes, sends_as: str, receives_as: str) -> None:
        self._key = key
        self._sends_as = sends_as
        self._receives_as = receives_as
        self._sent = 0
        self._received = 0

    def wrap(self, fields: tuple[str, ...]) -> tuple[str, ...]:
        """The fields of the next message with the code that proves them."""
        self._sent += 1
        return (*fields, code(self._key, self._sends_as, str(self._sent), *fields))

    def unwrap(self, message: list[str]) -> list[str] | None:
        """The fields of a message, or None when its code is wrong."""
        *fields, given = message
        self._received += 1
        expected = code(self._key, self._receives_as, str(self._received), *fields)
        return fields if same(given, expected) else None


def session_key(secret: bytes, worker_nonce: str, leader_nonce: str) -> bytes:
    """The key of one connection, derived from the job's secret and both ends' random numbers (in hex)."""
    return bytes.fromhex(code(secret, "session", worker_nonce, leader_nonce))
