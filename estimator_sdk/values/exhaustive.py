"""A `match` that leaves no case out."""

from __future__ import annotations

from typing import NoReturn


def assert_never(value: NoReturn) -> NoReturn:
    """For the last case: mypy refuses it where a value may come this far. (`typing` has it from Python 3.11 on.)"""
    raise AssertionError(f"{value!r} is not a known kind")
