"""What becomes of a job whose node is gone: on a cluster of its own, whose nodes may be hurt."""

from __future__ import annotations

import pytest

from estimator_sdk import Estimator, JobFailed
from estimator_sdk.backends.slurm import queue
from tests.waiting import SECONDS

from . import cluster
from .configuration import FEW_NODES
from .test_cluster import wait_for
from .test_jobs import COUNTING, number_of, wait_for_line, wait_until_published

pytestmark = pytest.mark.law("R2")


@pytest.fixture
def slurmd_timeout():
    return 30


@pytest.fixture
def own(monkeypatch, tmp_path, slurmd_timeout):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(queue, "ASK_AGAIN_SECONDS", 1.0)
    with cluster.cluster(FEW_NODES, slurmd_timeout) as made:
        monkeypatch.setenv("SLURM_CONF", made.environment()["SLURM_CONF"])
        yield made
    cluster.forget_dead_nodes(tmp_path)


def started(tmp_path, then="sys.exit()", **options):
    """A job whose hosts have left a checkpoint; `then` is what they do once they begin from one."""
    source = COUNTING.replace("sys.exit()", then).replace("flush", 'os.environ["SLURMD_NODENAME"], flush', 1)
    (tmp_path / "train.py").write_text(source)
    store = f"file://{tmp_path}/checkpoints"
    arguments = {"instance_type": "slurm", "instance_count": 2, "checkpoint_s3_uri": store, **options}
    arguments["distribution"] = {"mpi": {"enabled": True, "processes_per_host": 1}}
    job = Estimator(entry_point=str(tmp_path / "train.py"), **arguments).fit(wait=False)
    wait_for_line(job, "begins at 0", hosts=2)
    wait_until_published(job)
    return job


@pytest.mark.long  # Slurm notices after its SlurmdTimeout
@pytest.mark.parametrize("node", ["n1", "n2"], ids=["of the supervisor", "of another host"])
def test_a_job_that_may_be_tried_again_goes_on_without_a_node_that_is_gone(own, tmp_path, node):
    job = started(tmp_path, max_retry_attempts=3)
    own.kill_node(node)
    assert job.wait(timeout=150) == "Completed", job.why()
    if node == "n2":  # which Slurm did not know to be gone when it was asked for others
        assert " ExcNodeList=n2 " in shown(own, job)
    said = [line.data.decode() for line in job.logs(stream="stdout")]
    assert any(line.startswith("begins at ") and not line.startswith("begins at 0") for line in said), said


def nodes_of(job, host):
    """The nodes that a host has been on, in the order of its attempts."""
    lines = [line.data.decode() for line in job.logs(stream="stdout", host=host)]
    return [line.split()[-1] for line in lines if line.startswith("begins at ")]


def shown(own, job):
    """What Slurm says of a job."""
    return own.run("scontrol", "--oneliner", "show", "job", str(number_of(job)))


@pytest.mark.parametrize("slurmd_timeout", [300])  # or Slurm could notice before, and requeue the whole job
def test_a_spare_node_takes_the_place_of_one_that_is_gone(own, tmp_path):
    go_on = tmp_path / "go on"
    then = f"while not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.1)\n    sys.exit()"
    job = started(tmp_path, then, max_retry_attempts=1, spare_hosts=1)
    assert nodes_of(job, "algo-2") == ["n2"]
    own.kill_node("n2")
    # Or Slurm would end the job once it knows of the node.
    wait_for(lambda: nodes_of(job, "algo-2")[1:] and " NodeList=n[1,3] " in shown(own, job))
    go_on.touch()
    assert job.wait(timeout=SECONDS) == "Completed", job.why()
    (first, second) = job.attempts
    assert (first.verdict.kind, first.verdict.host, second.verdict) == ("host_lost", "algo-2", None)
    assert (nodes_of(job, "algo-1"), nodes_of(job, "algo-2")) == (["n1", "n1"], ["n2", "n3"])
    assert " Restarts=0 " in shown(own, job)


@pytest.mark.parametrize("node", ["n1", "n2"], ids=["of the supervisor", "of another host"])
def test_a_job_that_may_not_be_started_again_has_failed_by_the_node_that_is_gone(own, tmp_path, node):
    job = started(tmp_path, slurm={"requeue": False}, max_retry_attempts=1)
    own.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=gone")
    with pytest.raises(JobFailed) as failed:
        job.wait(timeout=SECONDS)
    assert failed.value.verdict.kind == "host_lost"


@pytest.mark.parametrize(
    ("grace", "requeue"),
    [(0, True), (20, False), *(pytest.param(*pair, marks=pytest.mark.long) for pair in ((0, False), (20, True)))],
)
def test_a_job_that_is_preempted_is_what_the_documentation_says(own, tmp_path, grace, requeue):
    own.run("scontrol", "update", "PartitionName=debug", f"GraceTime={grace}")
    job = started(tmp_path, slurm={"requeue": requeue})
    own.run("sbatch", "--partition=urgent", "--nodelist=n1", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
    if requeue:
        assert job.wait(timeout=SECONDS) == "Completed", job.why()
        assert job._started.record().attempts[0].verdict.kind == "preempted"
        return
    with pytest.raises(JobFailed) as failed:
        job.wait(timeout=SECONDS)
    assert failed.value.verdict.kind == "preempted"


def test_a_job_of_one_attempt_whose_node_is_gone_names_the_host(own, tmp_path):
    job = started(tmp_path)
    own.kill_node("n2")
    with pytest.raises(JobFailed) as failed:
        job.wait(timeout=SECONDS)
    assert (failed.value.verdict.kind, failed.value.verdict.host) == ("host_lost", "algo-2")
