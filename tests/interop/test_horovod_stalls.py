"""Horovod's own tools in a job: its timeline and autotune, and what its stall inspector says."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from estimator_sdk import Estimator, Job, JobFailed

SCRIPT = """
import os, time
for variable, name in (("HOROVOD_TIMELINE", "timeline.json"), ("HOROVOD_AUTOTUNE_LOG", "autotune.csv")):
    os.environ[variable] = os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], name)
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
for step in range(40):
    hvd.allreduce(tf.ones(1000))
if hvd.rank() == 1:
    time.sleep(float(os.environ["LATE"]))
hvd.allreduce(tf.ones(3))
"""


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)

    def train(**environment: str) -> Job:
        return Estimator(
            entry_point=script,
            distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
            environment={"HOROVOD_STALL_CHECK_TIME_SECONDS": "1", **environment},
            backend="process",
        ).fit()

    return train


SENTENCE = "Horovod has waited more than 1 s for rank 1 to submit 'HorovodAllreduce'"


def test_what_it_records_is_among_the_outputs_and_a_stall_is_told_while_it_lasts(train, tmp_path, capsys):
    job = train(
        LATE="3", HOROVOD_AUTOTUNE="1", HOROVOD_AUTOTUNE_WARMUP_SAMPLES="1", HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE="2"
    )
    assert job.status == "Completed"
    with tarfile.open(Path(job.model_data.removeprefix("file://")).with_name("output.tar.gz")) as archive:
        archive.extractall(tmp_path / "outputs", filter="data")
    assert "ALLREDUCE" in json.dumps(json.loads((tmp_path / "outputs" / "timeline.json").read_text()))
    assert (tmp_path / "outputs" / "autotune.csv").read_text().startswith("hierarchical_allreduce,")
    shown = capsys.readouterr().out
    assert shown.count(SENTENCE) == 1, shown
    (said,) = {line.rank for line in job.logs(stream="stderr") if b"Missing ranks:" in line.data}
    assert said == 0


def test_where_it_ends_the_world_the_verdict_is_on_the_rank_that_was_missing(train):
    with pytest.raises(JobFailed) as failed:
        train(LATE="600", HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="3", HOROVOD_CYCLE_TIME="20")
    found = failed.value.verdict
    assert (found.kind, found.rank, found.host, found.victims) == ("deadlock", 1, "algo-1", (0,))
    assert found.message.endswith("for rank 1 to submit 'HorovodAllreduce'")
