"""A function whose time counts as spent on something."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ...contract.names import DOCTOR
from ..page import INPUT

if TYPE_CHECKING:
    from ..step_account import StepAccount

T = TypeVar("T")


def timed(stock: Callable[..., T], account: StepAccount, kind: int) -> Callable[..., T]:
    """The same function; while it runs, the account has the rank spend its time on that kind of thing."""

    @functools.wraps(stock)
    def timed(*args: Any, **kwargs: Any) -> T:
        account.begin(kind)
        try:
            return stock(*args, **kwargs)
        finally:
            account.end()

    return timed


def taking(batches: Iterator[T], account: StepAccount, by: str, count: int | None = None) -> Callable[[], T]:
    """`__next__` of an iterator, which counts as waiting for input; in a trial of the doctor with what that changes.

    `by` says what gives these batches, and `count` how many they are, if that is known.
    """
    if os.environ.get(DOCTOR):
        from .. import trials

        batches = trials.of_iterator(batches, by, count)
    return timed(batches.__next__, account, INPUT)
