"""The last line of a terminal, while a line of the log grows that has no end yet, such as a progress bar."""

from __future__ import annotations

import re
import shutil
import time
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from estimator_container.logs.lines import Line

REST_SECONDS = 1.0
"""After this, a line that has not grown gives way to another rank's."""
CLEAR = "\r\x1b[K"
"""Leaves a terminal at the begin of an empty line."""

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class LiveLine:
    """Chooses, of all lines that grow, the one that a terminal shows: that of the lowest rank which goes on."""

    def __init__(self) -> None:
        self._shown: tuple[bool, int, str, str] | None = None
        self._at = 0.0

    def text_of(self, line: Line) -> str | None:
        """The text that replaces the line that was shown before; None if that one stays."""
        key = (line.rank is None, line.rank or 0, line.host, line.stream)
        now = time.monotonic()
        if self._shown is not None and key > self._shown and now - self._at < REST_SECONDS:
            return None
        self._shown, self._at = key, now
        return CLEAR + fitted(line.tag + state_of(line.data), shutil.get_terminal_size().columns - 1)


def state_of(data: bytes) -> str:
    """What an unfinished line shows, without anything that would move a terminal's cursor or change its colours."""
    text = data.rstrip(b"\r").decode("utf-8", "backslashreplace")
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


def fitted(text: str, columns: int) -> str:
    """As much of a text as fits into so many columns, of which some characters take two and some none."""
    for at, character in enumerate(text):
        columns -= 0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        if columns < 0:
            return text[:at]
    return text
