"""Names in sentences: the nearest right one to a wrong one, and the first of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_SOME = 5
_LISTED = 60  # names in one sentence; a longer list helps nobody


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that `word` was probably meant to be, or None.

    >>> nearest("process_per_host", ["enabled", "processes_per_host"])
    'processes_per_host'
    """
    import difflib

    by_folded = {name.casefold(): name for name in known}
    found = difflib.get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about a wrong name: the nearest right one, and all of them unless they are many.

    >>> suggestion("enable", ["enabled", "processes_per_host"])
    "did you mean 'enabled'? Known: enabled, processes_per_host."
    """
    names = sorted(known)
    near = nearest(word, names)
    parts = [f"did you mean {near!r}?"] if near else []
    if not names:
        return "none is known."
    if len(names) <= _LISTED:
        parts.append(f"Known: {', '.join(names)}.")
    return " ".join(parts) or f"None of the {len(names)} known names is close to it."


def some(names: Sequence[str]) -> str:
    """The names, or of many the first and how many more.

    >>> some(["a", "b", "c", "d", "e", "f", "g"])
    'a, b, c, d, e and 2 more'
    """
    more = len(names) - _SOME
    return ", ".join(names[:_SOME]) + (f" and {more} more" if more > 0 else "")
