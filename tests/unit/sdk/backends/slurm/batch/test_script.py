import json
import shlex
import subprocess
import sys

import pytest

from estimator_sdk import Estimator
from estimator_sdk.errors import InvalidArgument


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Plans a job on Slurm, which asks Slurm for nothing."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text("print(1)")

    def planned(**arguments):
        given = {"instance_type": "slurm", **arguments}
        return Estimator(entry_point=str(tmp_path / "train.py"), **given).plan(job_name="digits")

    return planned


def options(script):
    return [line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH ")]


def test_a_job_asks_for_a_node_for_each_host_and_for_what_it_needs_of_each(plan):
    script = plan(instance_count=3, cpus=2.5, memory=1.5, max_run=3000, stop_timeout=120).script
    # 3000 s, 120 s and ten minutes for what follows, in minutes
    assert options(script)[:6] == [
        "--job-name=digits",
        "--nodes=3",
        "--ntasks-per-node=1",
        "--cpus-per-task=3",
        "--mem=1536M",
        "--time=62",
    ]


def test_gpus_of_a_host_are_asked_for_on_each_node_and_make_the_processes(plan):
    world = {"mpi": {"enabled": True}}
    planned = plan(instance_count=3, gpus=2, slurm={"hosts_per_node": 2}, distribution=world)
    assert "--gpus-per-node=4" in options(planned.script)
    assert planned.processes_per_host == 2


def test_gpus_of_a_job_count_more_than_those_of_its_site(plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slurm.toml").write_text("gpus_per_node = 8")
    assert "--gpus-per-node=1" in options(plan(gpus=1).script)
    assert "--gpus-per-node=8" in options(plan().script)


def test_gpus_elsewhere_are_refused_by_that_name(plan):
    with pytest.raises(InvalidArgument, match=r"^gpus=2 asks for GPUs of Slurm's nodes, but .* backend 'process'"):
        plan(instance_type="local", gpus=2)


def test_a_job_that_asks_for_nothing_leaves_it_to_slurm(plan):
    said = " ".join(options(plan().script))
    assert "--cpus-per-task" not in said and "--mem" not in said and "--partition" not in said


def test_the_instance_type_may_name_a_partition(plan):
    assert "--partition=gpu" in options(plan(instance_type="slurm.gpu").script)


def test_a_partition_that_is_named_twice_is_given_once(plan):
    script = plan(instance_type="slurm.gpu", slurm={"partition": "gpu"}).script
    assert options(script).count("--partition=gpu") == 1
    with pytest.raises(InvalidArgument, match="names another one; give one of them"):
        plan(instance_type="slurm.gpu", slurm={"partition": "debug"})


def test_the_options_of_the_job_are_in_its_script(plan):
    said = options(plan(slurm={"account": "lab", "comment": "two words", "requeue": False}).script)
    assert {"--account=lab", '--comment="two words"', "--no-requeue"} <= set(said)


def test_what_the_supervisor_says_is_kept_from_one_start_to_the_next(plan, tmp_path):
    said = options(plan().script)
    assert "--open-mode=append" in said
    (output,) = (line for line in said if line.startswith("--output="))
    assert output.startswith(f'--output="{tmp_path}/home/slurm/digits/')


def test_it_is_a_valid_script_whose_last_command_is_the_supervisor(plan, tmp_path):
    script = plan(slurm={"comment": "a; (b) # c"}).script
    subprocess.run(["/bin/sh", "-n"], input=script, text=True, check=True)
    assert script.startswith("#!/bin/sh\n#SBATCH ") and script.endswith("\n")
    *_, trap, last = script.splitlines()
    assert trap.startswith("trap '' INT HUP")
    command, python, *_, folder, search_path = shlex.split(last)
    assert (command, python, folder) == ("exec", sys.executable, f"{tmp_path}/home/slurm/digits")
    assert all(entry.startswith("/") for entry in json.loads(search_path))


def test_a_home_with_a_quote_does_not_end_its_word(plan, tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "it's a home"))
    script = plan().script
    subprocess.run(["/bin/sh", "-n"], input=script, text=True, check=True)
    assert shlex.split(script.splitlines()[-1])[-2] == f"{tmp_path}/it's a home/slurm/digits"


def test_hosts_that_share_nodes_ask_for_fewer_and_for_what_they_need_together(plan):
    options_of_job = {"hosts_per_node": 2, "gpus_per_node": 4}
    planned = plan(instance_count=3, cpus=2, memory=1, spare_hosts=1, slurm=options_of_job)
    said = options(planned.script)
    assert {"--nodes=3", "--cpus-per-task=4", "--mem=2048M", "--gpus-per-node=4"} <= set(said)
    assert "hosts-per-node" not in planned.script and "2 hosts on each node" in str(planned)
    mpi = {"mpi": {"enabled": True}}
    assert plan(instance_count=4, distribution=mpi, slurm=options_of_job).processes_per_host == 2
    with pytest.raises(InvalidArgument, match="the 3 GPUs of a node cannot be divided evenly"):
        plan(instance_count=4, slurm={"hosts_per_node": 2, "gpus_per_node": 3})


def test_gpus_of_a_node_are_processes_where_the_distribution_says_none(plan):
    planned = plan(distribution={"mpi": {"enabled": True}}, slurm={"gpus_per_node": 4})
    assert planned.processes_per_host == 4
