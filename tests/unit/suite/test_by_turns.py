"""Each value of each parameter of a law meets both backends, or, where it is the only parameter, one by turns."""

from __future__ import annotations

from itertools import product

import pytest

from tests.conformance.by_turns import BACKENDS, turns_of


def product_of(**sizes: int) -> list[dict[str, int]]:
    """All tests of parameters with so many values."""
    return [dict(zip(sizes, places, strict=True)) for places in product(*map(range, sizes.values()))]


@pytest.mark.parametrize("others", [{"keep": 2}, {"keep": 3}, {"keep": 2, "mode": 2}])
def test_of_several_parameters_every_value_meets_both_backends(others):
    tests = product_of(store=2, **others, backend=2)
    turns = turns_of(tests)
    for name in ("store", *others):
        met = {(test[name], turn) for test, turn in zip(tests, turns, strict=True)}
        assert met == set(product(range({"store": 2, **others}[name]), BACKENDS))


def test_a_single_parameter_goes_by_turns():
    assert turns_of(product_of(failure=3)) == ["process", "docker", "process"]


def test_parameters_that_are_given_together_are_one():
    tests = [{"hosts": place, "host": place, "backend": backend} for place in range(2) for backend in range(2)]
    assert turns_of(tests) == ["process", "process", "docker", "docker"]


def test_without_parameters_that_vary_a_law_has_no_turn():
    assert turns_of(product_of(backend=2, only=1)) == [None, None]
