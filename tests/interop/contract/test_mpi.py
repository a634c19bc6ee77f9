"""The world of MPI, from how its ranks start to when the job ends."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime
from typing import Any

import pytest

from .containers import Host
from .worlds import HOSTS, TOKEN, TWO


@pytest.fixture
def jobs(all_worlds, toolkit) -> dict[str, list[Host]]:
    return all_worlds[toolkit.name]


@pytest.fixture
def world(jobs) -> dict[str, Any]:
    ended = [host.ended() for host in jobs["two"]]
    assert [each.code for each in ended] == [0, 0], ended[0].log
    return ended[0].report


@pytest.mark.contract("M1")
def test_the_world(world):
    assert world["hosts"] == ["algo-1", "algo-1", "algo-2", "algo-2"]
    assert [each["environment"]["OMPI_COMM_WORLD_RANK"] for each in world["seen"]] == ["0", "1", "2", "3"]


@pytest.mark.contract("M2")
def test_every_rank_has_the_arguments_and_the_variables(world):
    for each in world["seen"]:
        assert each["arguments"] == ["--lr", "0.5"]
        assert json.loads(each["environment"]["SM_HOSTS"]) == list(HOSTS)
        assert each["environment"]["SM_HP_LR"] == "0.5"
        assert each["environment"]["TOKEN"] == TOKEN
        assert json.loads(each["environment"]["SM_DISTRIBUTION_INSTANCE_GROUPS"]) == ["homogeneousCluster"]
        assert json.loads(each["environment"]["SM_FRAMEWORK_PARAMS"]).keys() == {name for name in TWO if "mpi" in name}


@pytest.mark.contract("M3")
def test_the_host_that_a_rank_sees(toolkit, world):
    seen = [each["environment"]["SM_CURRENT_HOST"] for each in world["seen"]]
    assert seen == (["algo-1", "algo-1", "algo-2", "algo-2"] if toolkit.is_ours else ["algo-1"] * 4)


@pytest.mark.contract("M5")
def test_custom_options(toolkit, world):
    name, value = ("QUOTED", "a*b") if toolkit.is_ours else ("'QUOTED", "a*b'")
    variables = [each["environment"] for each in world["seen"]]
    assert {(each[name], each["NCCL_DEBUG"]) for each in variables} == {(value, "WARN")}


@pytest.mark.contract("M6")
def test_when_the_job_ends(toolkit, jobs, world):
    times = ["docker", "inspect", "-f", "{{.State.FinishedAt}}", *(host.container for host in jobs["two"])]
    said = subprocess.run(times, capture_output=True, check=True, text=True).stdout.split()
    # A worker of the package may be first: it sleeps from when Open MPI's daemon goes into the background, if it saw
    # the process that the daemon forks from.
    last = max(datetime.fromisoformat(f"{end[:19]}+00:00").timestamp() + 1 for end in said)
    late = last - world["ended"]
    assert late < 30 if toolkit.is_ours else late >= 30  # which the package sleeps, on any machine


@pytest.mark.contract("M7")
def test_how_the_hosts_trust_each_other(toolkit, jobs, world):
    key = ["docker", "cp", f"{jobs['two'][0].container}:/root/.ssh/id_rsa", "-"]
    assert subprocess.run(key, capture_output=True, check=False).returncode == (1 if toolkit.is_ours else 0)
    assert ("SSH daemon" in jobs["two"][1].log) == (not toolkit.is_ours)


@pytest.mark.contract("M8")
def test_what_files_have_the_variables(toolkit, jobs, world):
    for host in jobs["two"][1:]:
        command = f"docker export {host.container} | grep -c {TOKEN}"
        found = subprocess.run(["sh", "-c", command], capture_output=True, check=False).stdout
        assert int(found) == 0 if toolkit.is_ours else int(found) > 0
        listed = subprocess.run(["grep", "-rl", TOKEN, str(host.folder)], capture_output=True, check=False).stdout
        assert listed == b""


@pytest.mark.contract("H10")
def test_a_number_of_processes_that_is_a_string(toolkit, jobs):
    first = jobs["wrong"][0]
    if toolkit.is_ours:
        ended = first.ended()
        assert ended.code == 2 and "must be a whole number of at least 1, such as 2, not '1' (str)" in ended.failure
    else:
        first.waits_for("num_processes: 11")


@pytest.mark.contract("M4")
def test_without_a_number_there_is_one_process_where_there_is_no_gpu(jobs):
    (host,) = jobs["default"]
    assert host.ended().report["hosts"] == ["algo-1"]
