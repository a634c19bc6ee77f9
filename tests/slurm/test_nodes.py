"""What becomes of a job whose node is gone: on a cluster of its own, whose nodes may be hurt."""

from __future__ import annotations

import pytest

from estimator_sdk import Estimator, JobFailed
from estimator_sdk.backends.slurm import queue

from . import cluster
from .test_jobs import COUNTING, wait_for_line, wait_until_published

pytestmark = pytest.mark.law("R2")


@pytest.fixture
def own(monkeypatch, tmp_path):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(queue, "ASK_AGAIN_SECONDS", 1.0)
    with cluster.cluster() as made:
        monkeypatch.setenv("SLURM_CONF", made.environment()["SLURM_CONF"])
        yield made


def started(tmp_path, **options):
    (tmp_path / "train.py").write_text(COUNTING)
    store = f"file://{tmp_path}/checkpoints"
    arguments = {"instance_type": "slurm", "instance_count": 2, "checkpoint_s3_uri": store, **options}
    arguments["distribution"] = {"mpi": {"enabled": True, "processes_per_host": 1}}
    job = Estimator(entry_point=str(tmp_path / "train.py"), **arguments).fit(wait=False)
    wait_for_line(job, "begins at 0")
    wait_until_published(job)
    return job


@pytest.mark.long  # Slurm notices after its SlurmdTimeout
@pytest.mark.parametrize("node", ["n1", "n2"], ids=["of the supervisor", "of another host"])
def test_a_job_that_may_be_tried_again_goes_on_without_a_node_that_is_gone(own, tmp_path, node):
    job = started(tmp_path, max_retry_attempts=3)
    own.kill_node(node)
    assert job.wait(timeout=150) == "Completed", job.why()
    said = [line.data.decode() for line in job.logs(stream="stdout")]
    assert any(line.startswith("begins at ") and line != "begins at 0\n" for line in said), said


@pytest.mark.parametrize("grace", [0, 20])
@pytest.mark.parametrize("requeue", [True, False])
def test_a_job_that_is_preempted_is_what_the_documentation_says(own, tmp_path, grace, requeue):
    own.run("scontrol", "update", "PartitionName=debug", f"GraceTime={grace}")
    job = started(tmp_path, slurm={"requeue": requeue})
    own.run("sbatch", "--partition=urgent", "--nodelist=n1", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
    if requeue:
        assert job.wait(timeout=100) == "Completed", job.why()
        assert job._started.record().attempts[0].verdict.kind == "preempted"
        return
    with pytest.raises(JobFailed) as failed:
        job.wait(timeout=60)
    assert failed.value.verdict.kind == "preempted"


def test_a_job_of_one_attempt_whose_node_is_gone_names_the_host(own, tmp_path):
    job = started(tmp_path)
    own.kill_node("n2")
    with pytest.raises(JobFailed) as failed:
        job.wait(timeout=60)
    assert (failed.value.verdict.kind, failed.value.verdict.host) == ("host_lost", "algo-2")
