import pytest
from estimator_container.failures.verdict import Verdict

from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.backends.suspects import WITHIN, Suspect, suspects


def attempts(*failures):
    """Each is the kind of a verdict, its host, and when the attempt ended."""
    records = []
    for number, (kind, host, ended) in enumerate(failures, 1):
        records.append(AttemptRecord(number, 0.0, ended, Verdict(kind, "it failed", host)))
    return [*records, AttemptRecord(len(records) + 1, 0.0)]


def test_a_host_that_fails_twice_in_ten_minutes_is_suspect():
    found = suspects(attempts(("host_lost", "algo-2", 0.0), ("host_missing", "algo-2", WITHIN)))
    assert found == (Suspect("algo-2", 2),)


@pytest.mark.parametrize(
    "failures",
    [
        [("host_lost", "algo-2", 0.0)],
        [("host_lost", "algo-2", 0.0), ("host_lost", "algo-2", WITHIN + 1)],
        [("host_lost", "algo-2", 0.0), ("host_lost", "algo-3", 1.0)],
        [("signal", "algo-2", 0.0), ("exception", "algo-2", 1.0)],
        [("preempted", "algo-2", 0.0), ("preempted", "algo-2", 1.0)],
        [("host_lost", None, 0.0), ("host_lost", None, 1.0)],
        [("host_lost", "algo-2", None), ("host_lost", "algo-2", 1.0)],
    ],
)
def test_nobody_is_suspect_after_less_or_after_what_is_the_scripts(failures):
    assert suspects(attempts(*failures)) == ()


def test_each_suspect_is_counted_within_its_worst_ten_minutes():
    often = [("host_lost", "algo-3", at) for at in (0.0, 700.0, 800.0, 1299.0, 5000.0)]
    found = suspects(attempts(*often, ("host_lost", "algo-1", 5001.0), ("host_lost", "algo-1", 5002.0)))
    assert found == (Suspect("algo-3", 3), Suspect("algo-1", 2))
