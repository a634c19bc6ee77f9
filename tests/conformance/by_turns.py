"""Which parameters of a law run on which backend.

A law holds for all its parameters on every backend, but a job for each pair of them would take too long for every run.
So each set of parameters meets one of our own backends, by turns, and `scripts/test --all` alone runs the other pairs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

BACKENDS = ("process", "docker")
LAWS = Path(__file__).parent


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark tests of the laws as `long` whose parameters have their turn on the other backend."""
    of_function: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if LAWS in item.path.parents and isinstance(item, pytest.Function) and _backend(item) in BACKENDS:
            of_function[item.nodeid.partition("[")[0]].append(item)
    for tests in of_function.values():
        if {*map(_backend, tests)} == {*BACKENDS}:
            for test, turn in zip(tests, turns_of([test.callspec.params for test in tests]), strict=True):
                if turn not in (None, _backend(test)):
                    test.add_marker(pytest.mark.long)


def turns_of(tests: Sequence[Mapping[str, object]]) -> list[str | None]:
    """The backend on which each test, given by its parameters, has its turn; None where all have the same.

    Where every value of one parameter meets every value of another, each of them meets both backends.

    >>> turns_of([{"store": "file", "keep": 1}, {"store": "file", "keep": 2}, {"store": "s3", "keep": 1}])
    ['process', 'docker', 'process']
    """
    columns = {_places([test[name] for test in tests]) for name in tests[0] if name != "backend"}
    varied = [column for column in columns if max(column) > 0]  # parameters that vary together are one column
    if not varied:
        return [None] * len(tests)
    sets = list(zip(*varied, strict=True))
    number = {each: place for place, each in enumerate(dict.fromkeys(sets))}
    is_product = len(number) == math.prod(max(column) + 1 for column in varied)
    return [BACKENDS[(sum(each) if is_product else number[each]) % len(BACKENDS)] for each in sets]


def _places(values: Iterable[object]) -> tuple[int, ...]:
    """Which of the different values each is, in the order in which they come."""
    known: dict[str, int] = {}
    return tuple(known.setdefault(repr(value), len(known)) for value in values)


def _backend(item: pytest.Function) -> object:
    return item.callspec.params.get("backend") if hasattr(item, "callspec") else None
