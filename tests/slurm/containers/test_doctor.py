"""The doctor of a user who is logged in, on a cluster whose machines have only the shared folder in common."""

from __future__ import annotations

import json
import shlex

import pytest

from .cluster import PYTHON, ContainerCluster
from .jobs import SUBMIT, ClusterJob, assert_nothing_is_left

pytestmark = pytest.mark.long
OF_LOGIN = "/usr/local/bin/only-here"
"""A Python that the nodes do not have."""


def found(cluster: ContainerCluster, **variables: str) -> dict[str, str]:
    """What the doctor and its probe say is missing, by its name."""
    told = shlex.join(f"{name}={value}" for name, value in variables.items())
    doctor = f"{PYTHON} -m estimator_sdk doctor --backend slurm --probe --json"
    said = json.loads(cluster.login(f"env {told} {doctor} || true"))
    return {each["what"]: each["detail"] for each in said if not each["is_there"]}


def test_a_cluster_that_has_all_that_jobs_need(containers: ContainerCluster):
    assert found(containers) == {}


def test_a_folder_that_nodes_do_not_share_is_named(containers: ContainerCluster):
    containers.run("install", "--directory", "--owner=ada", "--mode=700", "/srv/ada", machine="login")
    missing = found(containers, ESTIMATOR_HOME="/srv/ada")
    assert list(missing) == ["probe job"], missing
    assert "nodes do not share that folder" in missing["probe job"]


def test_a_node_without_the_python_that_calls_fit_is_named(containers: ContainerCluster):
    containers.run("sh", "-c", f"ln -sf $(command -v python3) {OF_LOGIN}", machine="login")
    packages = containers.login(f"""{PYTHON} -c "import sysconfig; print(sysconfig.get_path('purelib'))" """).strip()
    program = SUBMIT.format(
        folder="of-login",
        source="print(1)",
        arguments='{"instance_type": "slurm", "instance_count": 2}',
        inputs=None,
    )
    said = containers.login(f"rm -rf of-login && PYTHONPATH={packages} exec {OF_LOGIN} -c {shlex.quote(program)}")
    job = ClusterJob(containers, said.split()[-1])
    end = job.end()
    assert (end["status"], f"{OF_LOGIN} is not on n" in end["why"]) == ("Failed", True), end
    assert_nothing_is_left(job)
