"""Training steps on TensorFlow and Horovod: they are counted without a line in the script, and a slow rank is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_sdk import Estimator, Job
from estimator_sdk.job.traces import window
from tests.conformance.jobs import events
from tests.interop.training.looking import ended_once_a_rank_is_slow, has_logs
from tests.waiting import wait_for

JOB = Path(__file__).parent / "job"


@pytest.fixture(scope="module", autouse=True)
def jobs_elsewhere(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTIMATOR_HOME", str(tmp_path_factory.mktemp("home")))
        yield


def estimator(way: str, hosts: int = 1, **environment: str) -> Estimator:
    return Estimator(
        entry_point="train.py",
        source_dir=JOB,
        instance_count=hosts,
        distribution={"mpi": {"enabled": True}},
        backend="process",
        arguments=[way],
        environment=environment,
    )


def train(way: str, hosts: int = 1, **environment: str) -> Job:
    return estimator(way, hosts, **environment).fit(logs="none")


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
    """First all ranks are alike but for noise; then rank 1 takes longer than the others, until it is named.

    Horovod's ranks meet at the end of each cycle, and keep a CPU busy until the last is there: here seldom.
    """
    job = estimator("even_then_slow", 3, HOROVOD_CYCLE_TIME="20").fit(wait=False, logs="none")
    return ended_once_a_rank_is_slow(job)


def test_a_rank_that_is_slower_by_a_half_is_named_once(even_then_slow):
    (told,) = events(even_then_slow, "rank_slow")
    assert (told["host"], told["rank"]) == ("algo-2", 1)
    # A busy machine adds to both alike. If what a rank waits for the others were its own, they would be the same.
    assert told["own"] > 1.19 and told["median"] > 0.79
    assert told["own"] - told["median"] == pytest.approx(0.4, rel=0.5)
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


@pytest.mark.long
@pytest.mark.parametrize("mode", ["DYNAMIC", None])
def test_horovods_timeline_is_recorded_while_somebody_asks_and_no_longer(mode):
    job = estimator("until_stopped", 2, **({"HOROVOD_TIMELINE": mode} if mode else {})).fit(wait=False, logs="none")
    try:
        wait_for(lambda: has_logs(job) and len(steps_of(job)) == 2, otherwise=job.why)
        for _ in range(2):  # Horovod starts and stops again
            found = window.record(job.started, 1.0)
            check(found, mode is not None)
        assert job.status == "InProgress"
    finally:
        job.stop()
    assert job.wait() == "Stopped"


def check(found: window.RecordedWindow, has_timeline: bool) -> None:
    """What a window of two ranks has."""
    events = found.trace["traceEvents"]
    steps = [each for each in events if each.get("cat") == "steps"]
    assert {(each["pid"], each["tid"]) for each in steps} == {(1, 1), (2, 2)}
    assert found.trace["otherData"]["clock_offsets"]["algo-2"] == pytest.approx(0.0, abs=0.1)
    operations = [each for each in events if each.get("cat") == "horovod"]
    if not has_timeline:
        how = 'environment={"HOROVOD_TIMELINE": "DYNAMIC"}, or `estimator run --env HOROVOD_TIMELINE=DYNAMIC`'
        said = f"Horovod began without it, and cannot start it later; start the job with {how}"
        assert found.notes == (f"rank 0: Horovod's timeline recorded nothing: {said}",)
        assert operations == []
        return
    assert found.notes == ()
    assert {each["name"] for each in operations if each["ph"] != "E"} >= {"NEGOTIATE_ALLREDUCE", "ALLREDUCE"}
    begun, ended = (function(each["ts"] + each.get("dur", 0) for each in steps) for function in (min, max))
    inside = [each for each in operations if begun - 1e5 <= each["ts"] <= ended + 1e5]
    assert len(inside) >= 0.9 * len(operations)  # by one clock with the steps
