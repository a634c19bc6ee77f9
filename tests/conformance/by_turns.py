"""Which parameters of a law run on which backend.

A law holds for all its parameters on every backend, but a job for each pair of them would take too long for every run.
So each set of parameters meets one of our own backends, by turns, and `scripts/test --all` alone runs the other pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import pytest

BACKENDS = ("process", "docker")
Indices = Mapping[str, int]
"""Parameter -> the place of its value among all values that it has."""


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark tests of the laws as `long` whose parameters have their turn on the other backend."""
    of_function: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and "backend" in item.callspec.params:
            of_function[item.nodeid.partition("[")[0]].append(item)
    for tests in of_function.values():
        if {test.callspec.params["backend"] for test in tests} >= {*BACKENDS}:
            for test, turn in zip(tests, turns_of([test.callspec.indices for test in tests]), strict=True):
                if turn is not None and test.callspec.params["backend"] in {*BACKENDS} - {turn}:
                    test.add_marker(pytest.mark.long)


def turns_of(tests: Sequence[Indices]) -> list[str | None]:
    """The backend on which each test has its turn; None where all tests have the same parameters.

    Where there are several parameters, each value of each meets both backends.

    >>> turns_of([{"store": 0, "keep": 0}, {"store": 0, "keep": 1}, {"store": 1, "keep": 0}, {"store": 1, "keep": 1}])
    ['process', 'docker', 'docker', 'process']
    """
    columns = {tuple(test[name] for test in tests) for name in tests[0] if name != "backend"}
    # Parameters that are given together count once, and those with one value do not count.
    varied = [column for column in columns if len(set(column)) > 1]
    if not varied:
        return [None] * len(tests)
    return [BACKENDS[sum(places) % len(BACKENDS)] for places in zip(*varied, strict=True)]
