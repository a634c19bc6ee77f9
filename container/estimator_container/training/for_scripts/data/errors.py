"""What reading data raises."""

from __future__ import annotations


class DataError(Exception):
    """The data cannot be read as asked for; the message says what, where, why, and what to do."""
