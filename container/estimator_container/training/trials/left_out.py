"""What of a script is left out in a trial."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Callable, TypeVar

from . import words

T = TypeVar("T")


def saving(stock: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of a function that saves: nothing in a trial without checkpoints, else that function.

    In one with fewer of them it is called when its turn comes.
    """
    if words.has(words.NO_CHECKPOINTS):
        return lambda *args, **kwargs: None
    every = words.number(words.CHECKPOINT_EVERY)
    if every < 2:
        return stock
    calls = 0

    def in_turn(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return stock(*args, **kwargs) if calls % every == 0 else None

    return in_turn


def replayed(stock: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """In the place of an iterator's `__next__`: the first batch, as often as there would be batches."""

    def replaying(self: Any) -> Any:
        given = vars(self).setdefault("_estimator_replayed", [])
        if not given:
            given += [stock(self), 0]
        given[1] += 1
        try:
            count = len(self)
        except TypeError:  # nobody knows how many there are
            count = given[1]
        if given[1] > count:
            raise StopIteration
        return given[0]

    return replaying


def first_again(batches: Iterator[T], count: int | None) -> Iterator[T]:
    """The first batch so many times, or for ever; nothing where there is none."""
    for first in batches:
        yield from itertools.repeat(first) if count is None else itertools.repeat(first, count)
        return
