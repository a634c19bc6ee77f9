"""Training steps on PyTorch with DDP, on containers of the image of a version."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_sdk import Job, PyTorch
from tests.conformance.jobs import events

JOB = Path(__file__).parent / "job"


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def train(way: str, processes: int) -> Job:
    return PyTorch(
        framework_version="2.13",
        entry_point="train_torch.py",
        source_dir=JOB,
        distribution={"torch_distributed": {"enabled": True, "processes_per_host": processes}},
        arguments=[way],
    ).fit(logs="none")


def test_each_step_of_an_optimizer_is_counted():
    job = train("few", 2)
    steps = {r: n for e in events(job, "training_steps") for r, n in zip(e["ranks"], e["steps"], strict=True)}
    assert steps == {0: 12, 1: 12}
    assert job.ledger().source == "steps"


def test_a_rank_that_takes_twice_as_long_before_it_communicates_is_named_and_no_other():
    told = events(train("slow", 4), "rank_slow")
    assert [(each["host"], each["rank"]) for each in told] == [("algo-1", 2)]
    # A busy machine adds to both alike. If what a rank waits for the others were its own, they would be the same.
    assert told[0]["own"] > 0.29
    assert told[0]["own"] - told[0]["median"] == pytest.approx(0.15, rel=0.5)
