"""No set of a law's parameters is left out, and where several are combined every value meets both backends."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.conformance import by_turns
from tests.conformance.by_turns import BACKENDS, SERVICE, one_of_each, turns_of

ROOT = Path(__file__).parents[3]
BACKEND = re.compile(rf"(?<=[\[-])({'|'.join(BACKENDS)})(?=[\]-])")
SLURM = "slurm"
ON_SLURM = re.compile(rf"(?<=[\[-]){SLURM}(?=[\]-])")


def product_of(**values: object) -> list[dict[str, object]]:
    """Tests with every value of each parameter beside every value of the others."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


@pytest.mark.parametrize("others", [{"keep": [None, 1]}, {"keep": "abc"}, {"keep": [None, 1], "mode": "ab"}])
def test_of_several_parameters_every_value_meets_both_backends(others):
    values = {"store": ("file", "s3"), **others}
    tests = product_of(**values, backend=BACKENDS)
    turns = turns_of(tests)
    for name, each in values.items():
        met = {(test[name], turn) for test, turn in zip(tests, turns, strict=True)}
        assert met == set(product(each, BACKENDS))


def test_a_single_parameter_goes_by_turns():
    assert turns_of(product_of(failure="abc")) == ["process", "docker", "process"]


@pytest.mark.parametrize(
    "places", [[(1, "a"), (2, "b")], [(1, "a"), (2, "b"), (3, "a")], [(2, "a"), (2, "b"), (3, "c")]]
)
def test_of_parameters_that_are_given_together_each_set_has_one_turn(places):
    tests = [{"hosts": hosts, "host": host, "backend": backend} for backend in BACKENDS for hosts, host in places]
    turns = turns_of(tests)
    assert turns == turns[: len(places)] * 2 and set(turns) == {*BACKENDS}


def test_without_parameters_that_vary_a_law_has_no_turn():
    assert turns_of(product_of(backend=BACKENDS, only="a")) == [None, None]


@pytest.mark.parametrize(
    ("tests", "chosen"),
    [
        ([({"A"}, 0), ({"A"}, 0), ({"B"}, 0)], [True, False, True]),
        ([({"A"}, 1), ({"A"}, 0)], [False, True]),
        ([({"A", "B"}, 0), ({"B"}, 0), ({"B", "C"}, 0)], [True, False, True]),
        ([({"A"}, None), ({"A"}, 3), (set(), 0)], [False, True, False]),
        ([({"A"}, 0), ({"A", "B"}, 0), ({"B", "C"}, 0)], [False, True, True]),
        ([({"A"}, 2), ({"A", "B"}, 0), ({"B"}, 1)], [False, True, False]),
    ],
)
def test_each_law_has_on_slurm_the_first_test_that_costs_least(tests, chosen):
    assert one_of_each([(frozenset(laws), cost) for laws, cost in tests]) == chosen


def test_every_run_has_every_law_on_both_backends_and_every_set_of_its_parameters_on_one():
    of_all, of_every_run = (without_slurm(tests) for tests in laws(*BACKENDS, SERVICE, SLURM))
    assert of_every_run < of_all
    assert {BACKEND.sub("one", test) for test in of_every_run} == {BACKEND.sub("one", test) for test in of_all}
    proofs = (ROOT / "tests/conformance/proofs.txt").read_text()
    tests_of = re.findall(r"^(\w+) (\S+)", proofs, re.MULTILINE)

    def proved(tests: set[str]) -> set[tuple[str, str]]:
        places = {(test.partition("[")[0], found[1]) for test in tests if (found := BACKEND.search(test))}
        return {(law, backend) for law, test in tests_of for backend in BACKENDS if (test, backend) in places}

    assert proved(of_every_run) == proved(of_all) and len(proved(of_all)) > 80


def test_every_run_has_few_tests_on_slurm_which_meet_every_law():
    of_all, of_every_run = laws(*BACKENDS, SERVICE, SLURM)
    stated = re.findall(r"^(\w+) (\S+)", (ROOT / "tests/conformance/proofs.txt").read_text(), re.MULTILINE)

    def met(tests: set[str]) -> set[str]:
        names = {test.partition("[")[0] for test in tests}
        return {law for law, test in stated if test in names}

    few = of_every_run - without_slurm(of_every_run)
    assert met(few) == met(of_all - without_slurm(of_all))
    assert len(few) <= len(met(few))


def test_what_is_listed_for_a_pool_and_for_executors_is_there():
    """So that a test that is renamed does not stop running there unnoticed."""
    for name in by_turns.ON_POOL | by_turns.ON_EXECUTORS:
        path, _, test = name.partition("::")
        assert f"def {test}(" in (by_turns.LAWS / path).read_text(), name


def test_where_slurm_alone_is_named_every_test_runs_there():
    of_all, of_every_run = laws(SLURM)
    assert of_all == of_every_run and len(of_all) > 300


def without_slurm(tests: set[str]) -> set[str]:
    return {test for test in tests if not ON_SLURM.search(test)}


@functools.cache
def laws(*backends: str) -> tuple[set[str], set[str]]:
    """The tests of the laws on these backends: those of `scripts/test --all`, and those of every run."""
    options = [f"--backend={backend}" for backend in backends]
    done = subprocess.run([sys.executable, "-c", LIST, *options], check=True, cwd=ROOT, capture_output=True, text=True)
    found = [line.split("\t") for line in done.stdout.splitlines() if "::" in line]
    return {test for test, _ in found}, {test for test, is_long in found if is_long == "False"}


LIST = """
import sys
import pytest
class Lists:
    def pytest_collection_finish(self, session):
        for item in session.items:
            print(item.nodeid, item.get_closest_marker("long") is not None, sep="\\t")
pytest.main(["--collect-only", "-qq", "tests/conformance", *sys.argv[1:]], plugins=[Lists()])
"""
