"""An agent as its owner hears it, in whatever order the kernel tells of its words and its end."""

import os
import signal
from types import SimpleNamespace

import pytest
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.supervised.agents.agent_process import AgentProcess
from tests.waiting import SECONDS

ANSWERS = """
import socket, sys
from estimator_container.runtime.wire import pack
socket.socket(fileno=int(sys.argv[1])).sendall(pack(["finished", "0", ""]))
"""


@pytest.fixture
def start(tmp_path):
    """Starts an agent that is a script; returns what is heard of it, and what it has been started with."""
    loop = Loop()
    children = Children(loop)

    def made(source):
        script = tmp_path / "agent.py"
        script.write_text(f"import json, sys\nsys.path[:] = json.loads(sys.argv[2])\n{source}")
        settings = SimpleNamespace(script=str(script), to_json=str)
        heard = []
        agent = AgentProcess(loop, children, settings, heard.append, heard.append)
        return heard, agent, loop, children

    yield made
    signal.set_wakeup_fd(-1)


def test_what_it_has_said_is_heard_before_its_end(start):
    heard, agent, loop, children = start(ANSWERS)
    os.waitid(os.P_PID, agent._pid, os.WEXITED | os.WNOWAIT)
    children.reap()
    assert heard == []
    loop.run_until(lambda: len(heard) == 2, SECONDS)
    assert heard == [["finished", "0", ""], 0]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_no_signal_to_all_processes_ends_it_while_it_starts(start, signum):
    heard, agent, loop, _ = start(ANSWERS)
    os.kill(agent._pid, signum)
    loop.run_until(lambda: len(heard) == 2, SECONDS)
    assert heard == [["finished", "0", ""], 0]
