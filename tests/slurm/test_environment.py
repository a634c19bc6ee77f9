"""What hosts find on their nodes: another Python, modules."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest
from estimator_container.failures.kind import Kind

from estimator_sdk import Estimator, JobFailed
from estimator_sdk.backends.slurm.batch import packages
from tests.waiting import SECONDS

MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}
ADDS_UP = """
from mpi4py import MPI
print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank), flush=True)
"""
DEVICES = """
import os
print(os.environ.get("MPI_UCX_NET_DEVICES"), flush=True)
"""
NAMES = """
import os
print(*sorted(name for name in os.environ if "MODULES" in name or name.startswith("OF_")), flush=True)
"""
WHERE = """
import os, sys
print(sys.prefix, os.environ.get("OF_A_MODULE", "nothing"), flush=True)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


@pytest.fixture
def estimator(tmp_path, slurm):
    def made(source: str = WHERE, distribution: object = None, **options: object) -> Estimator:
        (tmp_path / "train.py").write_text(source)
        return Estimator(
            entry_point=str(tmp_path / "train.py"),
            instance_type="slurm",
            instance_count=2,
            distribution=distribution,
            slurm=dict(options),
        )

    return made


def said(job) -> list[str]:
    return [line.data.decode().strip() for line in job.logs(stream="stdout")]


@pytest.mark.parametrize(("distribution", "ranks"), [(None, 2), (MPI, 4)], ids=["alone", "mpi"])
def test_nodes_need_a_python_and_nothing_of_ours_in_it(estimator, tmp_path, distribution, ranks):
    venv.create(tmp_path / "env", with_pip=False)
    python = str(tmp_path / "env" / "bin" / "python")
    job = estimator(WHERE, distribution, python=python).fit(logs="none")
    assert said(job) == [f"{tmp_path}/env nothing"] * ranks
    supervisor = job._started.record().supervisor
    assert supervisor is not None and packages.copy().exists()


@pytest.mark.long
def test_nodes_may_have_the_oldest_python_that_hosts_run_on(estimator):
    python = Path(__file__).parents[2] / ".venv-python3.9" / "bin" / "python"
    assert python.exists(), f"{python} is missing: run scripts/setup pythons"
    job = estimator(WHERE, MPI, python=str(python)).fit(logs="none")
    assert said(job) == [f"{python.parents[1]} nothing"] * 4


def test_a_python_that_is_not_on_the_nodes_is_named(estimator, tmp_path):
    with pytest.raises(JobFailed, match="/nowhere/python is not Python 3.9 or later on n") as failed:
        estimator(python="/nowhere/python").fit(logs="none")
    assert failed.value.verdict.kind is Kind.CONFIGURATION  # for which nobody is told to try it again


@pytest.fixture
def lmod(tmp_path, monkeypatch):
    """A site whose modules set a variable."""
    init = tmp_path / "lmod" / "init"
    init.mkdir(parents=True)
    (init / "sh").write_text("module() { export LOADEDMODULES=$2 OF_A_MODULE=$1-$2; }\n")
    monkeypatch.setenv("LMOD_PKG", str(tmp_path / "lmod"))


def test_what_modules_set_reaches_the_script(estimator, lmod):
    job = estimator(modules=["science"]).fit(logs="none")
    prefix = Path(sys.executable).parents[1]
    assert [Path(line.split()[0]).samefile(prefix) and line.split()[1] for line in said(job)] == ["load-science"] * 2
    assert "OF_A_MODULE" not in os.environ


def test_a_shell_that_submits_by_hand_adds_nothing_to_what_modules_set(estimator, slurm, lmod, tmp_path, monkeypatch):
    job = estimator(NAMES, modules=["science"], export_script=str(tmp_path / "job.sh")).fit(wait=False)
    monkeypatch.setenv("OF_THE_SHELL", "a secret")
    slurm.run("sbatch", str(tmp_path / "job.sh"))
    assert job.wait(timeout=SECONDS) == "Completed", job.why()
    (first, second) = said(job)
    assert first == second == "LOADEDMODULES OF_A_MODULE"


@pytest.mark.parametrize("transport", ["tcp", "fabric"])
def test_a_job_says_how_its_ranks_talk(estimator, transport):
    asked = estimator(ADDS_UP, MPI, transport=transport, interface="lo")
    how = {"tcp": "TCP, as the job says", "fabric": "Open MPI chooses among UCX, libfabric and TCP, as the job says"}
    assert f"\n# MPI between nodes, as this machine shows it: {how[transport]}\n" in asked.plan().script
    assert said(asked.fit(logs="none")) == ["6"] * 4
    devices = estimator(DEVICES, MPI, transport=transport, interface="lo").fit(logs="none")
    assert said(devices) == [{"tcp": "lo", "fabric": "None"}[transport]] * 4  # which UCX reads for messages, too


def test_an_interface_that_a_node_lacks_is_named(estimator):
    with pytest.raises(JobFailed, match="no network interface 'ib9', which the job is to use; it has"):
        estimator(ADDS_UP, MPI, interface="ib9").fit(logs="none")
