"""What hosts find on their nodes: another Python, modules."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

from estimator_sdk import Estimator, JobFailed
from estimator_sdk.backends.slurm import packages

WHERE = """
import os, sys
print(sys.prefix, os.environ.get("OF_A_MODULE", "nothing"), flush=True)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


@pytest.fixture
def estimator(tmp_path, slurm):
    def made(**options: object) -> Estimator:
        (tmp_path / "train.py").write_text(WHERE)
        return Estimator(
            entry_point=str(tmp_path / "train.py"), instance_type="slurm", instance_count=2, slurm=dict(options)
        )

    return made


def said(job) -> list[str]:
    return [line.data.decode().strip() for line in job.logs(stream="stdout")]


def test_nodes_need_a_python_and_nothing_of_ours_in_it(estimator, tmp_path):
    venv.create(tmp_path / "env", with_pip=False)
    python = str(tmp_path / "env" / "bin" / "python")
    job = estimator(python=python).fit(logs="none")
    assert said(job) == [f"{tmp_path}/env nothing"] * 2
    supervisor = job._started.record().supervisor
    assert supervisor is not None and packages.copy().exists()


def test_a_python_that_is_not_on_the_nodes_is_named(estimator, tmp_path):
    with pytest.raises(JobFailed, match="/nowhere/python is not Python 3.10 or later on n"):
        estimator(python="/nowhere/python").fit(logs="none")


def test_what_modules_set_reaches_the_script(estimator, tmp_path, monkeypatch):
    init = tmp_path / "lmod" / "init"
    init.mkdir(parents=True)
    (init / "sh").write_text("module() { export LOADEDMODULES=$2 OF_A_MODULE=$1-$2; }\n")
    monkeypatch.setenv("LMOD_PKG", str(tmp_path / "lmod"))
    job = estimator(modules=["science"]).fit(logs="none")
    prefix = Path(sys.executable).parents[1]
    assert [Path(line.split()[0]).samefile(prefix) and line.split()[1] for line in said(job)] == ["load-science"] * 2
    assert "OF_A_MODULE" not in os.environ
