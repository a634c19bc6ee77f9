"""Text of a script or a user, for a report that other programs lay out."""

from __future__ import annotations

import re

LINE_ROOM = 1000
"""Characters of one line; a report with a progress bar's megabytes is refused as a whole."""
# The control characters but tab and newline, what breaks a line or turns its direction, and what is no character.
_NOT_SHOWN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def lines(text: str) -> str:
    """The lines with escapes for what cannot be shown; of a long line only the end."""
    cut = (each if len(each) <= LINE_ROOM else f"… {each[-LINE_ROOM:]}" for each in text.split("\n"))
    return "\n".join(_escaped(each.removesuffix("\r")) for each in cut)


def one_line(text: str) -> str:
    """
    >>> one_line("a\\r\\n\\tb")
    'a\\\\r\\\\n\\\\tb'
    """
    cut = text if len(text) <= LINE_ROOM else f"{text[:LINE_ROOM]} …"
    return _escaped(cut).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(text: str) -> str:
    return _NOT_SHOWN.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)
