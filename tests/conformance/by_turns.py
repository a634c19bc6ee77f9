"""Which tests of the laws run on which backend.

A law holds for all its parameters on every backend, but a job for each pair of them would take too long for every run.
So each set of parameters meets one of our own backends, by turns, and `scripts/test --all` alone runs the other pairs.
Of a law that code keeps which both backends share, every test runs on processes and each third one on containers. A
test that takes long says its turn itself: `@pytest.mark.turn`.

On the executors of a Spark session only `scripts/test --all` and `pytest --backend spark` run laws: those tests that
are in `on_spark.txt`.

On Slurm and on a pool with ssh, whose jobs take longer to start, every run has one test of each law, and
`scripts/test --all` has all of them, but for those that cannot hold there: on Slurm `@pytest.mark.on_one_machine`, on a
pool all that are not in `on_ssh.txt`. `pytest --backend slurm` has all of them, too.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from tests import scheduling

BACKENDS = ("process", "docker")
POOL = "ssh"
BY_LAW = ("slurm", POOL)
"""Those on which every run has one test of each law."""
SERVICE = "sagemaker"
"""The service itself is not here. What stands in for it tells whether what is submitted is right and enough, not when
and how the service starts, watches and ends its instances: only laws of the first kind are marked `on_service`."""
OF_HOSTS = ("E2", "E2b", "E3", "E4", "E9", "R1", "R2")
"""The laws that each backend keeps in a way of its own: how hosts end, what they leave, and who takes their place."""
EACH = 3
"""Of the tests of another law each third one runs on containers, too, and so does the first."""
LAWS = Path(__file__).parent
ON_POOL = frozenset((LAWS / "on_ssh.txt").read_text(encoding="utf-8").split())
"""The tests of the laws that were seen to hold on a pool."""
EXECUTORS = "spark"
ON_EXECUTORS = frozenset((LAWS / "on_spark.txt").read_text(encoding="utf-8").split())
"""The same of the executors of a Spark session; docs/spark.md says why others do not."""


def can_hold(backend: str, test: pytest.Function | pytest.FunctionDefinition) -> bool:
    """Whether a test can tell something about that backend at all."""
    if backend == SERVICE:
        return test.get_closest_marker("on_service") is not None
    if backend in (POOL, EXECUTORS):
        return test.nodeid.partition("[")[0].rpartition("/")[2] in (ON_POOL if backend == POOL else ON_EXECUTORS)
    return backend not in BY_LAW or test.get_closest_marker("on_one_machine") is None


def sees_store(item: pytest.Item) -> bool:
    """Whether the hosts of a test can reach the store that it is about: a pool has no folder of this machine."""
    return _backend(item) != POOL or "file" not in item.callspec.params.values()


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark tests of the laws as `long` that have their turn on the other backend, or in `scripts/test --all` alone."""
    of_laws = [item for item in items if LAWS in item.path.parents and isinstance(item, pytest.Function)]
    of_function: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    for item in of_laws:
        if _backend(item) in BACKENDS:
            of_function[item.nodeid.partition("[")[0]].append(item)
        if _backend(item) == EXECUTORS:
            item.add_marker(pytest.mark.long)
    seen: Counter[str] = Counter()
    for tests in of_function.values():
        if {*map(_backend, tests)} == {*BACKENDS}:
            for test, turn in zip(tests, _turns_of_tests(tests, seen), strict=True):
                if turn not in (None, _backend(test)):
                    test.add_marker(pytest.mark.long)
    if of_function:  # else one of these alone was named
        for backend in BY_LAW:
            there = [item for item in of_laws if _backend(item) == backend]
            for test, is_chosen in zip(there, one_of_each(map(_choice, there)), strict=True):
                if not is_chosen:
                    test.add_marker(pytest.mark.long)


def _choice(test: pytest.Function) -> tuple[frozenset[str], int | None]:
    if test.get_closest_marker("turn") or test.get_closest_marker("long"):
        return _laws(test), None
    is_alone = test.get_closest_marker("alone") is not None
    spins = scheduling.group(test.nodeid) == scheduling.SPINNING
    return _laws(test), is_alone + 2 * spins + 4 * test.nodeid.startswith(scheduling.LONGEST)


def one_of_each(tests: Iterable[tuple[frozenset[str], int | None]]) -> list[bool]:
    """Which tests are chosen so that each law has one: the first that costs least, unless others have all its laws.

    Each test is given by its laws and its cost, None for one that is not suitable.

    >>> one_of_each([({"A"}, 0), ({"A"}, 0), ({"B"}, None), ({"B"}, 1)])
    [True, False, False, True]
    >>> one_of_each([({"A"}, 0), ({"A", "B"}, 1), ({"B"}, 1)])
    [False, True, False]
    """
    known = [*tests]
    suitable = [place for place, (_, cost) in enumerate(known) if cost is not None]
    chosen, met = set(), set()
    for place in sorted(suitable, key=lambda place: known[place][1]):
        if not met.issuperset(known[place][0]):
            chosen.add(place)
            met |= known[place][0]
    for place in sorted(chosen, key=lambda place: (-known[place][1], place)):
        if set().union(*(known[other][0] for other in chosen - {place})).issuperset(known[place][0]):
            chosen.remove(place)
    return [place in chosen for place in range(len(known))]


def _laws(test: pytest.Function) -> frozenset[str]:
    return frozenset(law for mark in test.iter_markers("law") for law in mark.args)


def _turns_of_tests(tests: Sequence[pytest.Function], seen: Counter[str]) -> Sequence[str | None]:
    """`seen` counts, by law, the tests with a single set of parameters so far."""
    if said := tests[0].get_closest_marker("turn"):
        return said.args * len(tests)
    turns = turns_of([test.callspec.params for test in tests])
    if set(turns) != {None}:
        return turns
    laws = [law for mark in tests[0].iter_markers("law") for law in mark.args] or [tests[0].path.name]
    numbers = [seen[law] for law in laws]
    seen.update(laws)
    of_both = any(law in OF_HOSTS for law in laws) or any(number % EACH == 0 for number in numbers)
    return [None if of_both else BACKENDS[0]] * len(tests)


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
