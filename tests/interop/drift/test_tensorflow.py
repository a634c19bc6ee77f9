"""The drift guard on TensorFlow and Horovod: training without averaging is found, and what is to differ is left alone.

TensorFlow takes seconds to import, so one job trains in many ways; a verdict ends its job.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from estimator_sdk import Estimator, Job, JobFailed
from tests.conformance.jobs import events

JOB = Path(__file__).parent / "job"
BEFORE_HOROVOD = {"module_alone": "free"}
FOUND = {
    "fit_alone": "asked",
    "loop_alone": "asked",
    "eager_alone": "asked",
    "module_alone": "asked",
    "eager_module_alone": "asked",
    "forgotten_broadcast": "averaged",
}
LEFT_ALONE = (
    "fit_averaged",
    "tape_averaged",
    "averaged_by_adasum",
    "own_variables",
    "own_variables_of_an_optimizer",
    "two_models_against_each_other",
    "split_model",
    "other_shapes",
    "copied",
    "joined",
    "in_process_sets",
)


@pytest.fixture(scope="module", autouse=True)
def jobs_elsewhere(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTIMATOR_HOME", str(tmp_path_factory.mktemp("home")))
        yield


def train(*ways: str, **environment: str) -> Job:
    return Estimator(
        entry_point="train.py",
        source_dir=JOB,
        instance_count=2,
        distribution={"mpi": {"enabled": True}},
        backend="process",
        arguments=list(ways),
        environment=environment,
    ).fit(logs="none")


@pytest.mark.long  # that a verdict ends the job is seen with PyTorch, and what is said to Keras with Horovod below
def test_averaging_that_was_taken_out_ends_the_job_within_20_steps_with_the_name_of_a_variable():
    with pytest.raises(JobFailed) as failed:
        train("start_horovod", "fit_for_long", ESTIMATOR_HOROVOD_KERAS3="off")
    verdict = failed.value.verdict
    assert verdict.kind == "ranks_differ"
    assert re.search(r"since step 2 the weights 'fit_for_long/\w+/\w+' differ, rank 0 from rank 1", verdict.message)
    assert "none of its optimizers and tapes was seen to average gradients" in verdict.message
    assert "after step 5, some of it" in verdict.detail


def test_every_way_to_train_without_averaging_is_found_within_20_steps_and_no_other_way():
    """A warning is all that is wanted, so that one job can do it all."""
    ways = (*BEFORE_HOROVOD, "start_horovod", *FOUND, *LEFT_ALONE)
    job = train(*ways, ESTIMATOR_DRIFT_GUARD="warn", HOROVOD_DYNAMIC_PROCESS_SETS="1")
    told = events(job, "ranks_differ")
    assert [each["standing"] for each in told] == [*BEFORE_HOROVOD.values(), *FOUND.values()]
    assert all((each["since"], each["step"], each["ends_the_job"]) == (2, 5, False) for each in told)
    keras_models = [str(each["variable"]).split("/")[0] for each in told if "/" in str(each["variable"])]
    assert keras_models == ["fit_alone", "loop_alone", "eager_alone", "forgotten_broadcast"]
    said = [line.data.decode() for line in job.logs(stream="toolkit")]
    findings = [text for text in said if text.rstrip().endswith("; the job goes on")]
    assert len(findings) == len(told)
    (of_fit,) = (text for text in findings if re.search(r"since step 2 the weights 'fit_alone/\w+/\w+' differ", text))
    assert "rank 0 from rank 1" in of_fit
    assert "none of its optimizers and tapes was seen to average gradients" in of_fit
