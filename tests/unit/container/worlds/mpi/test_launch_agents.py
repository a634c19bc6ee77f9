"""mpirun's launch agents: what they ask reaches the toolkit, and what it answers ends them."""

from __future__ import annotations

import subprocess

import pytest
from estimator_container.runtime.loop import Loop
from estimator_container.worlds.mpi.launch_agents import STARTED, LaunchAgents

from tests.waiting import SECONDS

COMMAND = ("PATH=/a b:$PATH", "orted", "-mca", "ess_base_jobid", '"42"', "'$(touch x)'", "*", "x" * 100_000)


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def requests():
    return []


@pytest.fixture
def agents(loop, requests, tmp_path):
    made = LaunchAgents(loop, str(tmp_path / "it's here"), ["algo-2", "algo-3"], lambda *asked: requests.append(asked))
    yield made
    made.close()


@pytest.fixture
def ask(agents):
    """Start an agent as mpirun does."""
    running = []

    def start(node, *command):
        words = [agents.path, node, *command]
        running.append(subprocess.Popen(words, stderr=subprocess.PIPE, text=True))
        return running[-1]

    yield start
    for each in running:
        each.kill()
        each.communicate()


def test_a_command_comes_as_mpirun_gave_it(loop, requests, ask):
    ask("algo-2", *COMMAND)
    loop.run_until(lambda: requests, SECONDS)
    assert requests == [("algo-2", " ".join(COMMAND))]


def test_agents_of_several_nodes_end_each_with_its_own_answer(loop, requests, agents, ask):
    second, third = ask("algo-2", "orted"), ask("algo-3", "orted")
    loop.run_until(lambda: len(requests) == 2, SECONDS)
    agents.answer("algo-3", "no room\nleft on `it`")
    assert third.communicate(timeout=SECONDS)[1] == "algo-3 could not start its MPI daemon: no room left on `it`\n"
    assert third.returncode == 1
    assert second.poll() is None
    agents.answer("algo-2", STARTED)
    assert second.communicate(timeout=SECONDS)[1] == ""
    assert second.returncode == 0


def test_an_answer_waits_for_its_agent(agents, ask):
    agents.answer("algo-2", STARTED)
    assert ask("algo-2", "orted").wait(SECONDS) == 0


def test_an_agent_ends_with_the_toolkit(loop, tmp_path):
    requests = []
    agents = LaunchAgents(loop, str(tmp_path / "agents"), ["algo-2"], lambda *asked: requests.append(asked))
    with subprocess.Popen([agents.path, "algo-2", "orted"], stderr=subprocess.PIPE, text=True) as asking:
        loop.run_until(lambda: requests, SECONDS)
        agents.close()
        _, words = asking.communicate(timeout=SECONDS)
    assert asking.returncode == 1
    assert words == "algo-2 could not start its MPI daemon: the toolkit of its own host has ended\n"


def test_what_mpirun_asks_of_a_stranger_is_refused(agents, loop, requests, ask):
    stranger = ask("elsewhere", "orted")
    loop.run_until(lambda: False, 0.2)
    assert requests == []
    assert stranger.wait(SECONDS) != 0
