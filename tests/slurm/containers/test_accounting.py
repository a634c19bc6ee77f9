"""What is known of a job that Slurm's controller has forgotten: its accounting, in slurmdbd and MariaDB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .cluster import ContainerCluster
from .jobs import ClusterJob, submit

pytestmark = [pytest.mark.long, pytest.mark.law("G2")]
FORGOTTEN_SECONDS = 2
WAITING = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


@pytest.fixture
def forgetful(containers: ContainerCluster) -> Iterator[ContainerCluster]:
    """The cluster, whose controller forgets a job as soon as it is over."""
    containers.configure(FORGOTTEN_SECONDS)
    containers.run("scontrol", "reconfigure")
    yield containers
    containers.configure()
    containers.run("scontrol", "reconfigure")


def kill_supervisor(job: ClusterJob) -> None:
    """So that the job's folder has no word of its end."""
    node, *_ = job.nodes()
    job.cluster.run("sh", "-c", "kill -KILL $(pgrep -u ada -f backends/slurm)", machine=node)


def wait_until_forgotten(job: ClusterJob) -> None:
    asked = f"squeue --noheader --states=all --jobs={job.number} 2>/dev/null || true"
    job.cluster.wait(lambda: not job.cluster.run("sh", "-c", asked).strip(), "the controller forgets", 300)


def test_who_cancelled_a_job_is_said(containers: ContainerCluster):
    job = submit(containers, WAITING)
    job.wait_for_line("up", times=2)
    containers.run("scancel", str(job.number))
    end = job.end()
    assert (end["status"], end["reason"]) == ("Stopped", f"job {job.number} of Slurm was cancelled by root"), end


def test_how_a_job_ended_that_the_controller_has_forgotten(forgetful: ContainerCluster):
    cancelled = submit(forgetful, WAITING, hosts=1, slurm={"sbatch_options": {"begin": "now+1hour"}})
    lost = submit(forgetful, WAITING, hosts=1)
    lost.wait_for_line("up")
    forgetful.login(f"scancel {cancelled.number}")
    kill_supervisor(lost)
    wait_until_forgotten(cancelled)
    wait_until_forgotten(lost)
    end = cancelled.end()
    assert (end["status"], end["reason"]) == ("Stopped", f"job {cancelled.number} of Slurm was cancelled by ada"), end
    end = lost.end()
    assert (end["status"], end["kind"]) == ("Failed", "platform"), end
    assert f"job {lost.number} of Slurm is FAILED" in end["why"], end
