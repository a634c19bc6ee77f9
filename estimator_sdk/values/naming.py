"""Names and values in sentences: the nearest right one to a wrong one, and the first of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_SOME = 5
_DIGITS_A_BIT = 0.30103  # the logarithm of 2 to the base of 10
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


def suggestion(word: object, known: Iterable[str]) -> str:
    """The end of a sentence about a wrong name: the nearest right one, and all of them unless they are many.

    >>> suggestion("enable", ["enabled", "processes_per_host"])
    "did you mean 'enabled'? Known: enabled, processes_per_host."
    """
    names = sorted(known)
    near = nearest(word if isinstance(word, str) else shown(word), names)
    parts = [f"did you mean {near!r}?"] if near else []
    if not names:
        return "none is known."
    if len(names) <= _LISTED:
        parts.append(f"Known: {', '.join(names)}.")
    return " ".join(parts) or f"None of the {len(names)} known names is close to it."


def shown(value: object) -> str:
    """A value as a sentence quotes it: as Python writes it, where Python can.

    Python writes no int of more than 4,300 digits (`sys.set_int_max_str_digits`), nor anything that holds one.

    >>> shown(["a", 1]), shown(10**5000), shown([10**5000])
    ("['a', 1]", 'a number of about 5,001 digits', 'a list that Python cannot write out')
    """
    try:
        return repr(value)
    except Exception:  # the class of the value may be the user's, and do anything
        if isinstance(value, int):
            return f"a number of about {int(value.bit_length() * _DIGITS_A_BIT) + 1:,} digits"
        return f"a {type(value).__name__} that Python cannot write out"


def some(names: Sequence[str], most: int = _SOME, between: str = ", ") -> str:
    """The names, or of many the first and how many more.

    >>> some(["a", "b", "c", "d", "e", "f", "g"])
    'a, b, c, d, e and 2 more'
    """
    more = len(names) - most
    return between.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def size(count: float) -> str:
    """Bytes for people, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
