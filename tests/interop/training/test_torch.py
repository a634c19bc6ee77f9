"""Training steps on PyTorch with DDP, on containers of the image of a version."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_sdk import Job, PyTorch
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


def estimator(way: str, processes: int) -> PyTorch:
    return PyTorch(
        framework_version="2.13",
        entry_point="train_torch.py",
        source_dir=JOB,
        distribution={"torch_distributed": {"enabled": True, "processes_per_host": processes}},
        arguments=[way],
    )


@pytest.fixture(scope="module")
def with_a_slow_rank() -> Job:
    return ended_once_a_rank_is_slow(estimator("slow", 3).fit(wait=False, logs="none"))


def test_each_step_of_an_optimizer_is_counted(with_a_slow_rank):
    told = events(with_a_slow_rank, "training_steps")
    steps = {rank: n for event in told for rank, n in zip(event["ranks"], event["steps"], strict=True)}
    assert steps == {line.rank: int(line.data) for line in with_a_slow_rank.logs(stream="stdout")}
    assert sorted(steps) == [0, 1, 2]
    assert with_a_slow_rank.ledger().source == "steps"


def test_a_rank_that_takes_twice_as_long_before_it_communicates_is_named_and_no_other(with_a_slow_rank):
    told = events(with_a_slow_rank, "rank_slow")
    assert [(each["host"], each["rank"]) for each in told] == [("algo-1", 2)]
    # A busy machine adds to both alike. If what a rank waits for the others were its own, they would be the same.
    assert told[0]["own"] > 0.29
    assert told[0]["own"] - told[0]["median"] == pytest.approx(0.15, rel=0.5)


def ranks_of(job: Job) -> set[int]:
    """Those that have told a step."""
    return {rank for event in events(job, "training_steps") for rank in event["ranks"]}


@pytest.mark.long
def test_the_profiler_records_on_every_rank_while_somebody_asks():
    job = estimator("until_stopped", 2).fit(wait=False, logs="none")
    try:
        wait_for(lambda: has_logs(job) and len(ranks_of(job)) == 2, 120, job.why)
        for _ in range(2):  # it starts and stops again
            found = window.record(job.started, 1.0)
            assert found.notes == ()
            traced = found.trace["traceEvents"]
            names = {each["pid"]: each["args"]["name"] for each in traced if each.get("name") == "process_name"}
            averaging = [each for each in traced if "allreduce" in str(each.get("name")).replace("_", "")]
            assert {names[each["pid"]].partition(":")[0] for each in averaging} == {"rank 0", "rank 1"}
            steps = [each for each in traced if each.get("cat") == "steps"]
            assert {each["tid"] for each in steps} == {1, 2}
            begun, ended = (function(each["ts"] + each["dur"] for each in steps) for function in (min, max))
            assert all(begun - 1e6 <= each["ts"] <= ended + 1e6 for each in averaging)  # by one clock with the steps
        assert job.status == "InProgress"
    finally:
        job.stop()
    assert job.wait() == "Stopped"
