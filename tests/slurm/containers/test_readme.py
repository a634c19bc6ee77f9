"""README's words on clusters, as somebody does them who is new, has no root, and is logged in on the login machine."""

from __future__ import annotations

import re
import shlex

import pytest

from .cluster import ContainerCluster
from .image import ROOT
from .jobs import ClusterJob, assert_nothing_is_left

pytestmark = pytest.mark.long
SHELL, PYTHON = "```\n", "```python\n"


def block(section: str, fence: str) -> str:
    """The first block of a kind after some words of README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text[text.index(section) :].partition(fence)[2].partition("```")[0]


@pytest.fixture(scope="module")
def new_user(shared_cluster: ContainerCluster) -> ContainerCluster:
    """Who has the checkout in his home, and has made an environment there as README says."""
    install, *_ = block("**Without TensorFlow and Horovod**", SHELL).rpartition("\n.venv/bin/python")
    shared_cluster.login(f"cp -r /shared/software/checkout checkout && cd checkout && {install}")
    return shared_cluster


def run(cluster: ContainerCluster, program: str) -> str:
    """What the program prints, in the checkout, with the environment that the user has made."""
    return cluster.login(f"cd checkout && exec .venv/bin/python -c {shlex.quote(program)} 2>&1")


@pytest.mark.law("K3", "R5")
def test_a_new_user_trains_digits_on_two_nodes_and_goes_on_after_a_requeue(
    new_user: ContainerCluster, containers: ContainerCluster
):
    program = block("## On a cluster", PYTHON)
    said = run(containers, program)
    assert float(re.findall(r"test_accuracy: ([0-9.]+)", said)[0]) > 0.9, said
    assert "weights agree on all 4 ranks" in said
    (model,) = re.findall(r"model  file://(\S+)", said)
    names = containers.login(f"tar -tf {model}").split()
    assert any(name.endswith("model.npz") for name in names), names
    assert ".json" in containers.login("ls checkpoints/digits/.estimator/snapshots")

    longer = program.replace('"epochs": 12', '"epochs": 90').replace("checkpoints/digits", "checkpoints/longer")
    longer = longer.replace(".fit()", ".fit(wait=False)") + "print(job.name)\n"
    job = ClusterJob(containers, run(containers, longer).split()[-1])
    job.wait_for_line("epoch 3/")
    containers.login(f"scontrol requeue {job.number}")
    end = job.end(240)
    assert (end["status"], end["attempts"]) == ("Completed", ["preempted", None]), end
    said = "".join(text for _, _, text in job.lines())
    assert "resuming after epoch" in said and "test_accuracy" in said, said
    assert_nothing_is_left(job)
