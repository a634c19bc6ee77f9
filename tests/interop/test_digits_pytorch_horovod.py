"""The PyTorch + Horovod example, as a user runs it: on containers of the image that its version chooses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from estimator_sdk import Job, PyTorch

ENTRYPOINTS = Path(__file__).parents[2] / "entrypoints"


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def train(checkpoints: Path, **hyperparameters: object) -> Job:
    return PyTorch(
        framework_version="2.13",
        entry_point="digits_pytorch_horovod.py",
        source_dir=ENTRYPOINTS,
        instance_count=2,
        distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
        hyperparameters=hyperparameters,
        checkpoint_s3_uri=f"file://{checkpoints}",
        metric_definitions=[{"Name": "accuracy", "Regex": "test_accuracy: ([0-9.]+)"}],
    ).fit(logs="none")


def lines(job: Job) -> list[str]:
    return [line.data.decode().rstrip("\n") for line in job.logs(rank=0, stream="stdout")]


def test_it_learns_on_two_hosts(tmp_path):
    job = train(tmp_path / "checkpoints", epochs=10)
    assert lines(job)[0] == "training on 1438 images with 2 ranks"
    assert_has_learnt(job, tmp_path, range(1, 11))


@pytest.mark.long
def test_it_resumes_where_an_earlier_job_ended(tmp_path):
    train(tmp_path / "checkpoints", epochs=2)
    job = train(tmp_path / "checkpoints", epochs=12)
    assert lines(job)[0] == "resuming after epoch 2 from /opt/ml/checkpoints/epoch-0002.pt"
    assert_has_learnt(job, tmp_path, range(3, 13))


def assert_has_learnt(job: Job, folder: Path, epochs: range) -> None:
    said = lines(job)
    assert [match[1] for line in said if (match := re.match(rf"epoch (\d+)/{epochs[-1]} ", line))] == [
        str(epoch) for epoch in epochs
    ]
    assert "weights agree on all 2 ranks" in said
    (accuracy,) = job.metrics()
    assert (accuracy.name, accuracy.rank) == ("accuracy", 0) and accuracy.value > 0.95
    assert (job.download(folder / "model") / "model.pt").stat().st_size > 10_000
