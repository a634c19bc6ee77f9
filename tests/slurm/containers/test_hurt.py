"""What becomes of a job whose node, controller or shared folder is hurt: real machines, and a real network."""

from __future__ import annotations

import json
import time

import pytest

from .cluster import NODES, ContainerCluster
from .jobs import ClusterJob, assert_nothing_is_left, submit
from .scripts import FILLS

pytestmark = pytest.mark.long
NOTICED_SECONDS = 60.0
"""In which a job is over whose node is gone, also beside a busy machine."""
MPI = {"mpi": {"enabled": True, "processes_per_host": 1}}
COUNTS = """
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
found = sorted(int(each.name) for each in folder.iterdir() if each.name.isdigit())
print("begins at", found[-1] if found else 0, flush=True)
if found:
    sys.exit()
for step in range(1, 3000):
    if os.environ.get("RANK", "0") == "0":
        (folder / "new").write_text("x")
        (folder / "new").rename(folder / str(step))
    time.sleep(0.1)
"""
WAITS = """
import pathlib, time
print("up", flush=True)
while not pathlib.Path("{go}").exists():
    time.sleep(0.5)
print("done", flush=True)
"""
WAYS = {"killed": ContainerCluster.kill, "cut off": ContainerCluster.cut, "frozen": ContainerCluster.freeze}


def counting(cluster: ContainerCluster, **arguments: object) -> ClusterJob:
    """A job that runs, has published a checkpoint, and goes on for minutes."""
    store = f"file:///shared/home/ada/checkpoints-{time.time_ns()}"
    job = submit(cluster, COUNTS, checkpoint_s3_uri=store, distribution=MPI, **arguments)
    job.wait_for_line("begins at 0", times=2)
    snapshots = f"{store.removeprefix('file://')}/.estimator/snapshots"
    cluster.wait(lambda: ".json" in cluster.login(f"ls {snapshots} 2>/dev/null || true"), "a snapshot")
    return job


@pytest.mark.law("E2b", "G6")
@pytest.mark.parametrize("way", WAYS)
def test_a_host_whose_machine_is_gone_is_named(containers: ContainerCluster, way: str):
    job = counting(containers)
    _, node = job.nodes()
    struck = time.time()
    WAYS[way](containers, node)
    end = job.end()
    assert (end["status"], end["kind"], end["host"]) == ("Failed", "host_lost", "algo-2"), end
    assert end["ended"] - struck < NOTICED_SECONDS
    assert_nothing_is_left(job, *(each for each in NODES if each != node))


@pytest.mark.law("R2", "G6")
@pytest.mark.parametrize("way", ["killed", "cut off"])  # a frozen one is thawed again in the next test
def test_a_job_goes_on_elsewhere_without_the_machine_of_its_supervisor(containers: ContainerCluster, way: str):
    job = counting(containers, max_retry_attempts=2)
    node, _ = job.nodes()
    WAYS[way](containers, node)
    end = job.end(240)
    assert end["status"] == "Completed", end
    begins = {text for _, _, text in job.lines() if text.startswith("begins at")}
    assert len(begins) > 1, begins
    assert_nothing_is_left(job, *(each for each in NODES if each != node))


@pytest.mark.law("K4", "G6")
def test_a_machine_that_thaws_after_its_job_went_on_elsewhere_changes_nothing(containers: ContainerCluster):
    job = counting(containers, max_retry_attempts=2)
    node, _ = job.nodes()
    containers.freeze(node)
    end = job.end(240)
    assert end["status"] == "Completed", end
    containers.thaw(node)
    assert_nothing_is_left(job, *NODES)
    # On a machine whose caches have nothing of it.
    kept = json.loads(
        containers.run("cat", f"/shared/home/ada/.local/share/estimator-sdk/slurm/{job.name}/record.json")
    )
    assert (kept["status"], len(kept["attempts"])) == ("Completed", len(end["attempts"])), kept


@pytest.mark.law("G3")
def test_a_controller_that_is_started_again_in_mid_job_is_no_failure(containers: ContainerCluster):
    go = f"/shared/home/ada/go-{time.time_ns()}"
    job = submit(containers, WAITS.format(go=go))
    job.wait_for_line("up", times=2)
    containers.stop_controller()
    try:
        assert job.end(15)["status"] == "InProgress"
        containers.login(f"touch {go}")
    finally:
        containers.start_controller()
    assert job.end()["status"] == "Completed"
    assert sum(text == "done\n" for _, _, text in job.lines()) == 2
    assert_nothing_is_left(job, *NODES)


@pytest.mark.law("G2", "G6")
@pytest.mark.parametrize("what", ["checkpoints", "lines"])
def test_a_shared_folder_that_is_full_ends_a_job_in_words_and_leaves_nothing(containers: ContainerCluster, what: str):
    job = submit(
        containers, FILLS.format(what=what), checkpoint_s3_uri=f"file:///shared/home/ada/full-{time.time_ns()}"
    )
    job.wait_for_line("up", times=2)
    used = int(containers.run("sh", "-c", "du -sb /shared/home/ada | cut -f1"))
    containers.run("mfssetquota", "-L", str(used + 20_000_000), "/shared/home/ada")
    try:
        end = job.end()
        assert end["status"] == "Failed", end
        assert "quota" in end["why"] or "space" in end["why"], end
        assert_nothing_is_left(job, *NODES)
    finally:
        containers.run("mfsdelquota", "-L", "/shared/home/ada")
    assert job.end()["status"] == "Failed"
