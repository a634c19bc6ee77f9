"""The cluster that other tests rely on: it runs jobs, begins again what was preempted, leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm import cluster
from tests.slurm.cluster import SHARED, Cluster
from tests.slurm.configuration import FEW_NODES, NODES
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]


def submitted(own: Cluster, script: str, *options: str) -> str:
    return own.run("sbatch", "--parsable", "--open-mode=append", *options, f"--wrap={script}").strip()


@pytest.fixture(scope="module")
def own():
    """A cluster whose nodes may be hurt."""
    with cluster.cluster(FEW_NODES, slurmd_timeout=30) as made:
        yield made


def test_a_job_runs_on_two_nodes(slurm, tmp_path):
    said = tmp_path / "said"
    submitted(slurm, "srun sh -c 'echo $SLURMD_NODENAME'", "--nodes=2", "--wait", f"--output={said}")
    assert len(set(said.read_text().split())) == 2


def test_programs_find_the_cluster_without_being_told(slurm):
    states = subprocess.run(["sinfo", "-h", "-N", "-p", "debug"], check=True, capture_output=True, text=True).stdout
    assert len(states.splitlines()) == len(NODES)


def test_a_node_that_is_killed_leaves_nothing_and_may_come_again(own, tmp_path):
    job = submitted(own, "srun sleep 600", "--nodes=2", "--nodelist=n1,n2", f"--output={tmp_path / 'said'}")
    wait_for(lambda: any(b"sleep\0" in cmdline(pid) for pid in own.processes("n2")))
    own.kill_node("n2")
    wait_for(lambda: own.processes("n2") == set())  # what was killed may take a moment on a busy machine
    own.run("scancel", job)
    own.start_node("n2")
    wait_for(lambda: "idle" in own.run("sinfo", "-h", "-n", "n2", "-p", "debug", "-o", "%T"))


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_job_that_is_preempted_begins_again(own, tmp_path):
    said = tmp_path / "said"
    script = "echo begins; [ ${SLURM_RESTART_COUNT:-0} = 1 ] || sleep 600"
    job = submitted(own, script, "--nodes=1", "--nodelist=n3", f"--output={said}")
    wait_for(lambda: said.exists() and said.read_text() == "begins\n")
    urgent = submitted(own, "true", "--partition=urgent", "--nodelist=n3", "--exclusive", "--output=/dev/null")

    def state(number: str) -> str:
        return own.run("squeue", "-h", "-t", "all", "-j", number, "-o", "%T").strip()

    wait_for(lambda: state(urgent) == "COMPLETED" and state(job) == "COMPLETED", 180)
    assert said.read_text().count("begins\n") == 2


def test_a_cluster_beside_another_ends_with_its_command_and_what_its_jobs_left(tmp_path):
    script = f"""
        export SLURM_CONF=${SHARED}/slurm.conf
        sbatch --wrap 'srun --nodes=2 --ntasks=2 sleep 600' --nodes=2 --output=/dev/null
        until squeue --steps --noheader | grep -q 0; do sleep 0.1; done
        echo ${SHARED} > {tmp_path}/where
        exit 7
    """
    environment = {name: value for name, value in os.environ.items() if name != SHARED}
    command = [sys.executable, "-m", "tests.slurm.cluster", "bash", "-c", script]
    assert subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=400).returncode == 7
    folder = Path((tmp_path / "where").read_text().strip())
    assert not folder.exists()
    wait_for(lambda: Cluster(folder).processes() == set())  # what was killed may take a moment on a busy machine
