"""Which tests of the laws run on which backend.

A law holds for all its parameters on every backend, but a job for each pair of them would take too long for every run.
Of a law that each backend keeps in a way of its own every test runs on both, and of other laws as few on containers as
state them all, and the rest on processes alone. Where a test has sets of parameters, each of them meets one backend.
`scripts/test --all` alone runs the other pairs. A test that takes long says its turn itself: `@pytest.mark.turn`.

On the executors of a Spark session only `scripts/test --all` and `pytest --backend spark` run laws: those tests that
are in `on_spark.txt`.

On Slurm and on a pool with ssh, whose jobs take longer to start, every run has one test of each law, and
`scripts/test --all` has all of them, but for those that cannot hold there: on Slurm `@pytest.mark.on_one_machine`, on a
pool all that are not in `on_ssh.txt`. `pytest --backend slurm` has all of them, too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from tests import scheduling

CONTAINERS = "docker"
BACKENDS = ("process", CONTAINERS)
POOL = "ssh"
BY_LAW = ("slurm", POOL)
"""Those on which every run has one test of each law."""
SERVICE = "sagemaker"
"""The service itself is not here. What stands in for it tells whether what is submitted is right and enough, not when
and how the service starts, watches and ends its instances: only laws of the first kind are marked `on_service`."""
OF_HOSTS = ("W6", "E2", "E2b", "E3", "E4", "E9", "K8", "R1", "R2")
"""The laws that each backend keeps in a way of its own: how hosts begin and end, what they leave, and who is next."""
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
    folder = f"{LAWS}/"
    of_laws = [item for item in items if isinstance(item, pytest.Function) and str(item.path).startswith(folder)]
    of_function: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    for item in of_laws:
        if _backend(item) in BACKENDS:
            of_function[item.nodeid.partition("[")[0]].append(item)
        if _backend(item) == EXECUTORS:
            item.add_marker(pytest.mark.long)
    by_law = {backend: [item for item in of_laws if _backend(item) == backend] for backend in BY_LAW}
    by_law[CONTAINERS] = []
    twins: dict[pytest.Function, pytest.Function] = {}
    for tests in of_function.values():
        if {*map(_backend, tests)} != {*BACKENDS}:
            continue
        if turns := _turns_of_tests(tests):
            for test, turn in zip(tests, turns, strict=True):
                if turn not in (None, _backend(test)):
                    test.add_marker(pytest.mark.long)
            continue
        here, there = (sorted((test for test in tests if _backend(test) == each), key=_set) for each in BACKENDS)
        by_law[CONTAINERS] += there
        if len(there) > 1:
            twins.update(zip(there, here, strict=True))
    if of_function:  # else one of these alone was named
        for there in by_law.values():
            for test, is_chosen in zip(there, one_of_each(map(_choice, there)), strict=True):
                if not is_chosen:
                    test.add_marker(pytest.mark.long)
                elif test in twins:
                    twins[test].add_marker(pytest.mark.long)


def _set(test: pytest.Function) -> str:
    """The parameters of a test, but for its backend."""
    return repr(sorted((name, repr(value)) for name, value in test.callspec.params.items() if name != "backend"))


def _choice(test: pytest.Function) -> tuple[frozenset[str], int | None]:
    """The laws that a test states, and its cost. On containers a file's tests of none have one in every run, too."""
    laws = _laws(test) or frozenset({test.path.name} if _backend(test) == CONTAINERS else ())
    if test.get_closest_marker("turn") or test.get_closest_marker("long"):
        return laws, None
    is_alone = test.get_closest_marker("alone") is not None
    spins = scheduling.group(test.nodeid) == scheduling.SPINNING
    return laws, is_alone + 2 * spins + 4 * test.nodeid.startswith(scheduling.LONGEST)


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


def _turns_of_tests(tests: Sequence[pytest.Function]) -> Sequence[str | None]:
    """The turn of each, None for both; nothing if the law that they state has a few tests on containers."""
    if said := tests[0].get_closest_marker("turn"):
        return said.args * len(tests)
    return turns_of([test.callspec.params for test in tests]) if _laws(tests[0]).intersection(OF_HOSTS) else ()


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
