"""Many tasks, and many jobs: what they ask of a cluster."""

from __future__ import annotations

import re
import time

import pytest

from estimator_sdk import Estimator, list_jobs
from estimator_sdk.backends.slurm import queue

from .cluster import Cluster

pytestmark = pytest.mark.long
JOBS = 50
ADDS_UP = """
from mpi4py import MPI
print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank), flush=True)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


@pytest.mark.law("W1")
def test_64_tasks_on_four_nodes_are_one_world(slurm, tmp_path):
    (tmp_path / "train.py").write_text(ADDS_UP)
    mpi = {"mpi": {"enabled": True, "processes_per_host": 16}}
    estimator = Estimator(
        entry_point=str(tmp_path / "train.py"), instance_type="slurm", instance_count=4, distribution=mpi, cpus=4
    )
    job = estimator.fit(logs="none")
    assert {line.rank: line.data for line in job.logs(stream="stdout")} == {
        rank: b"%d\n" % sum(range(64)) for rank in range(64)
    }


def asked_for_jobs(slurm: Cluster) -> int:
    """How often anybody has asked the controller for jobs."""
    said = slurm.run("sdiag")
    return sum(int(count) for count in re.findall(r"REQUEST_JOB_INFO\w*\s+\(\s*\d+\) count:(\d+)", said))


def test_a_client_asks_the_controller_once_in_ten_seconds_for_all_its_jobs(slurm, tmp_path):
    (tmp_path / "train.py").write_text("print('hi')")
    waits = {"sbatch_options": {"begin": "now+1hour"}}
    estimator = Estimator(entry_point=str(tmp_path / "train.py"), instance_type="slurm", slurm=waits)
    jobs = [estimator.fit(wait=False) for _ in range(JOBS)]
    try:
        before, until = asked_for_jobs(slurm), time.monotonic() + 2 * queue.ASK_AGAIN_SECONDS
        looks = 0
        while time.monotonic() < until:
            assert {job.status for job in jobs} == {"InProgress"}
            assert len(list_jobs()) == JOBS
            looks += 1
        assert looks > 3
        assert asked_for_jobs(slurm) - before <= 3
    finally:
        for job in jobs:
            slurm.run("scancel", str(job._started.folder.read_number()))
