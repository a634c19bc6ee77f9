"""The drift guard on PyTorch, with process groups and with Horovod, on containers of the image of a version."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_sdk import Job, JobFailed, PyTorch, list_jobs
from tests.conformance.jobs import events

JOB = Path(__file__).parent / "job"


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def train(
    distribution: str, processes: int, *ways: str, entry_point: str = "train_torch.py", **environment: str
) -> Job:
    return PyTorch(
        framework_version="2.13",
        entry_point=entry_point,
        source_dir=JOB,
        distribution={distribution: {"enabled": True, "processes_per_host": processes}},
        arguments=list(ways),
        environment=environment,
    ).fit(logs="none")


def test_a_model_that_ddp_is_kept_from_averaging_ends_the_job_and_no_other_does():
    """Of four ranks: some models are each rank's own, one is of two groups, one is averaged."""
    ways = ("alone", "other_widths", "parallel", "in_two_groups", "uneven_inputs", "without_synchronizing")
    with pytest.raises(JobFailed) as failed:
        train("torch_distributed", 4, *ways)
    verdict = failed.value.verdict
    assert verdict.kind == "ranks_differ"
    assert "all ranks differ" in verdict.message and "Horovod or DDP averages its gradients" in verdict.message
    told = events(list_jobs()[0], "ranks_differ")
    assert [(each["standing"], each["since"], each["step"]) for each in told] == [("free", 2, 5), ("averaged", 2, 5)]
    assert told[1]["variable"] in ("hidden.weight", "hidden.bias", "out.weight", "out.bias")


def test_with_horovod_a_model_without_its_optimizer_is_found_and_one_with_it_is_not():
    """A warning is all that is wanted, so that one job can do both."""
    job = train("mpi", 2, "horovod_alone", "horovod_averaged", ESTIMATOR_DRIFT_GUARD="warn")
    (told,) = events(job, "ranks_differ")
    assert (told["standing"], told["step"], told["ends_the_job"]) == ("asked", 5, False)


def test_before_threads_can_call_a_function_of_pytorch_one_alone_has_called_it():
    """Else the first result of one rank may be less exact than that of the others, where oneMKL computes it."""
    train("torch_distributed", 2, entry_point="first_calls.py")
