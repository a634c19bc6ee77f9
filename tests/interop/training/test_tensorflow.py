"""Training steps on TensorFlow and Horovod: they are counted without a line in the script, and a slow rank is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_sdk import Estimator, Job
from tests.conformance.jobs import events

JOB = Path(__file__).parent / "job"


@pytest.fixture(scope="module", autouse=True)
def jobs_elsewhere(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTIMATOR_HOME", str(tmp_path_factory.mktemp("home")))
        yield


def train(way: str, hosts: int = 1, **environment: str) -> Job:
    return Estimator(
        entry_point="train.py",
        source_dir=JOB,
        instance_count=hosts,
        distribution={"mpi": {"enabled": True}},
        backend="process",
        arguments=[way],
        environment=environment,
    ).fit(logs="none")


def steps_of(job: Job) -> dict[int, int]:
    return {
        rank: steps
        for host in job.hosts
        for event in events(job, "training_steps", host=host)
        for rank, steps in zip(event["ranks"], event["steps"], strict=True)
    }


@pytest.mark.parametrize(("hosts", "environment"), [(1, {}), (2, {"ESTIMATOR_DRIFT_GUARD": "off"})])
def test_each_step_of_fit_is_counted_and_no_step_of_an_evaluation(hosts, environment):
    job = train("fit", hosts, **environment)
    assert steps_of(job) == dict.fromkeys(range(hosts), 15)
    assert job.ledger().source == "steps"
    found = job.diagnose()
    assert found.thin and not found.causes  # of 15 steps nothing is said
    assert [rank.input is not None for rank in found.ranks] == [True] * hosts


@pytest.fixture(scope="module")
def even_then_slow() -> Job:
    """First all ranks are alike but for noise; then rank 1 takes longer than the others.

    Horovod's ranks meet at the end of each cycle, and keep a CPU busy until the last is there: here seldom.
    """
    return train("even_then_slow", 3, HOROVOD_CYCLE_TIME="20")


def test_a_rank_that_is_slower_by_a_half_is_named_once(even_then_slow):
    (told,) = events(even_then_slow, "rank_slow")
    assert (told["host"], told["rank"]) == ("algo-2", 1)
    # A busy machine adds to both alike. If what a rank waits for the others were its own, they would be the same.
    assert told["own"] > 0.44 and told["median"] > 0.29
    assert told["own"] - told["median"] == pytest.approx(0.15, rel=0.5)
    said = [line.data.decode() for line in even_then_slow.logs(stream="toolkit")]
    assert sum("rank 1 on algo-2 is slow: its own part of a step takes" in text for text in said) == 1


def test_the_doctor_names_it_and_knows_how_long_the_others_wait(even_then_slow):
    found = even_then_slow.diagnose()
    slow = [cause for cause in found.causes if cause.kind == "slow rank"]
    assert [(cause.host, cause.rank) for cause in slow] == [("algo-2", 1)]
    waits = [rank.communication or 0.0 for rank in found.ranks]
    assert min(waits) == waits[1] and min(waits[0], waits[2]) > 0.1


def test_no_rank_is_named_in_an_even_run_with_noise(even_then_slow):
    said = [line.data.decode() for line in even_then_slow.logs(host="algo-1")]
    assert not [text for text in said[: said.index("from now on rank 1 is slow\n")] if "is slow: its own part" in text]
