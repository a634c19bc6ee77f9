"""What `estimator doctor --backend slurm` says of a cluster, with its probe job and without."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from estimator_sdk.backends.slurm import queue, site
from estimator_sdk.backends.slurm.probe import on_login_node
from estimator_sdk.cli.main import main
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(queue, "ASK_AGAIN_SECONDS", 1.0)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def doctor(capsys):
    """Runs the command; returns its exit code and what it found, by name."""

    def run(*words: str):
        code = main(["doctor", "--backend", "slurm", "--json", *words])
        found = json.loads(capsys.readouterr().out)
        return code, {each["what"]: each for each in found}

    return run


def test_a_cluster_that_has_all_that_jobs_need(slurm, doctor, tmp_path, monkeypatch):
    monkeypatch.setattr(on_login_node, "APART_SECONDS", 60.0)  # the clock is one, and looking may take its time
    code, found = doctor("--probe")
    assert [each["what"] for each in found.values() if not each["is_there"]] == [], found
    assert code == 0 and list(found)[-6:] == [
        *("probe job", "shared folder", "Python on nodes", "Open MPI on nodes", "ports between nodes", "clocks"),
    ]
    assert sys.executable in found["Python on nodes"]["detail"]
    assert [path.name for path in (tmp_path / "home").glob("probe-*")] == []
    wait_for(lambda: slurm.run("squeue", "-h", "--name=estimator-probe", "-o", "%i", "-t", "PD,R") == "")


def test_nodes_without_the_python_are_named(slurm, doctor):
    Path(site.FILE).write_text('python = "/nowhere/python"')
    code, found = doctor("--probe")
    assert (code, found["probe job"]["is_there"]) == (1, False)
    assert "nodes cannot run /nowhere/python" in found["probe job"]["detail"], found["probe job"]


def test_a_partition_that_takes_no_job_of_this_users_is_named(slurm, doctor):
    Path(site.FILE).write_text('partition = "nosuch"')
    code, found = doctor()
    assert code == 1 and "you may submit nothing to partition nosuch" in found["right to submit"]["detail"]
    assert site.FILE in found["right to submit"]["detail"]


def test_a_probe_that_gets_no_nodes_says_why_and_is_cancelled(slurm, doctor, monkeypatch):
    monkeypatch.setattr(on_login_node, "QUEUE_SECONDS", 3.0)
    Path(site.FILE).write_text('sbatch_options = { begin = "now+1hour" }')
    code, found = doctor("--probe")
    assert code == 1 and "still waits after 3 s: BeginTime" in found["probe job"]["detail"]
    wait_for(lambda: slurm.run("squeue", "-h", "--name=estimator-probe", "-o", "%i", "-t", "PD,R") == "")
