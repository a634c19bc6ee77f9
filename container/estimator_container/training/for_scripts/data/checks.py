"""Whether the arguments of a data set are what they are to be."""

from __future__ import annotations

import operator

from .errors import DataError


def whole(name: str, value: object) -> int:
    """An argument as a whole number, which one of NumPy's is, too. Raises DataError for anything else."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise DataError(f"{name} is {value!r}: give a whole number")


def check_counts(**counts: object) -> None:
    """Raises DataError for one that is not a whole number from 1 on."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise DataError(f"{name} is {value!r}: give a whole number from 1 on")


def check_count_of_epochs(count: object) -> None:
    """Raises DataError for anything but a number."""
    if isinstance(count, bool) or not isinstance(count, (int, float)):
        raise DataError(f"count is {count!r}: give the number of epochs")


def check_functions(**functions: object) -> None:
    """Raises DataError for one that cannot be called; None is for one that is not given."""
    for name, value in functions.items():
        if value is not None and not callable(value):
            raise DataError(f"{name} is {value!r}: give a function, or leave it out")
