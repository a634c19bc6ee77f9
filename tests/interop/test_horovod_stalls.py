"""Horovod's own tools in a job: its timeline and autotune, and what its stall inspector says.

TensorFlow takes seconds to import, so one job has both stalls: one that ends by itself, and one that ends the world.
"""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from estimator_sdk import Estimator, Job, JobFailed

SCRIPT = """
import os, sys, time
for variable, name in (("HOROVOD_TIMELINE", "timeline.json"), ("HOROVOD_AUTOTUNE_LOG", "autotune.csv")):
    os.environ[variable] = os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], name)
sys.modules["sklearn"] = None  # or Keras imports it for its own wrappers
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
for step in range(40):
    hvd.allreduce(tf.ones(1000), name="begun")  # for which a slow start may wait, too
for seconds, operation in ((6, hvd.allreduce), (600, hvd.allgather)):
    if hvd.rank() == 1:
        time.sleep(seconds)
    operation(tf.ones(3))
"""
ENVIRONMENT = {
    "HOROVOD_STALL_CHECK_TIME_SECONDS": "1",
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "12",
    "HOROVOD_AUTOTUNE": "1",
    "HOROVOD_AUTOTUNE_WARMUP_SAMPLES": "1",
    "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE": "2",
}


class Ended(NamedTuple):
    """The job, which its second stall has ended."""

    failed: JobFailed
    shown: str
    """By fit()."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("stalls")
    script = folder / "train.py"
    script.write_text(SCRIPT)
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTIMATOR_HOME", str(folder / "home"))
        estimator = Estimator(
            entry_point=script,
            distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
            environment=ENVIRONMENT,
            backend="process",
        )
        with pytest.raises(JobFailed) as failed, contextlib.redirect_stdout(shown):
            estimator.fit()
        yield Ended(failed.value, shown.getvalue())


def test_what_it_records_is_among_the_outputs(ended: Ended, tmp_path: Path) -> None:
    archived = Job.attach(ended.failed.job_name).output_data
    assert archived is not None
    with tarfile.open(archived.removeprefix("file://")) as archive:
        archive.extractall(tmp_path)
    assert "ALLREDUCE" in json.dumps(json.loads((tmp_path / "timeline.json").read_text()))
    assert (tmp_path / "autotune.csv").read_text().startswith("hierarchical_allreduce,")


def test_a_stall_is_told_while_it_lasts(ended: Ended) -> None:
    sentence = "Horovod has waited more than 1 s for rank 1 to submit 'HorovodAllreduce'"
    # Horovod repeats it each second, and one that comes late is taken for another stall.
    assert 1 <= ended.shown.count(sentence) <= 2, ended.shown
    stderr = Job.attach(ended.failed.job_name).logs(stream="stderr")
    assert {line.rank for line in stderr if b"Missing ranks:" in line.data} == {0}


def test_where_it_ends_the_world_the_verdict_is_on_the_rank_that_was_missing(ended: Ended) -> None:
    found = ended.failed.verdict
    assert (found.kind, found.rank, found.host, found.victims) == ("deadlock", 1, "algo-1", (0,))
    assert found.message.endswith("for rank 1 to submit 'HorovodAllgather'")
