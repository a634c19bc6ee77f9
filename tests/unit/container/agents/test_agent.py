"""What holds for every agent, each as a real process."""

import json
import signal
import socket
import subprocess
import sys

import pytest
from estimator_container.agents.agent import Agent
from estimator_container.agents.channels.channel import ChannelTask
from estimator_container.agents.channels.settings import ChannelSettings
from estimator_container.agents.checkpoints.settings import CheckpointSettings
from estimator_container.agents.outputs.settings import OutputSettings
from estimator_container.runtime.wire import Unpacker, pack

from tests.waiting import SECONDS


@pytest.fixture
def start():
    """Starts the agent of some settings; returns the process and its owner's end of the socket."""
    running = []

    def new(settings):
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-I", "-S", settings.script, str(theirs.fileno()), json.dumps(sys.path)]
        with theirs:
            process = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
        ours.settimeout(SECONDS)
        running.append((process, ours))
        ours.sendall(pack(("settings", settings.to_json())))
        return running[-1]

    yield new
    for process, ours in running:
        ours.close()
        process.kill()
        process.wait()


def answer(owner):
    unpacker = Unpacker()
    while True:
        for message in unpacker.feed(owner.recv(1 << 16)):
            return message


@pytest.fixture
def settings(tmp_path):
    """Of each agent, with what it answers first."""
    for name in ("data", "checkpoints"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "file").write_text("x")
    frames, store = str(tmp_path / "frames"), f"file://{tmp_path / 'store'}"
    task = ChannelTask("train", f"file://{tmp_path / 'data'}", str(tmp_path / "train"))
    return {
        "channels": ChannelSettings((task,), {"algo-1": str(tmp_path / "input")}, "hard", frames),
        "checkpoints": CheckpointSettings(
            store, str(tmp_path / "checkpoints"), (), str(tmp_path / "alive"), frames, "job", restore=True
        ),
        "outputs": OutputSettings(store, {"file": str(tmp_path / "data" / "file")}),
    }


@pytest.mark.parametrize("name", ["channels", "checkpoints", "outputs"])
def test_settings_are_the_same_on_the_other_side(settings, name):
    there = type(settings[name]).from_json(settings[name].to_json())
    assert there.to_json() == settings[name].to_json()


@pytest.mark.parametrize("name", ["channels", "checkpoints"])
def test_no_signal_ends_it_but_its_owner_does(start, settings, name):
    process, owner = start(settings[name])
    answer(owner)
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process.send_signal(signum)
    owner.close()
    assert process.wait(SECONDS) == 0


@pytest.mark.parametrize("name", ["channels", "checkpoints", "outputs"])
def test_it_ends_when_its_owner_is_gone(start, settings, name):
    process, owner = start(settings[name])
    owner.close()
    assert process.wait(SECONDS) == 0


def test_what_was_fetched_goes_away_with_the_owner_of_the_channels(start, settings, tmp_path):
    process, owner = start(settings["channels"])
    assert answer(owner) == ["ready", ""]
    assert (tmp_path / "train" / "every-host" / "file").read_text() == "x"
    owner.close()
    assert process.wait(SECONDS) == 0
    assert not (tmp_path / "train").exists()
    assert (tmp_path / "data" / "file").read_text() == "x"


def test_a_channel_that_cannot_be_had_is_named_with_its_reason(start, settings, tmp_path):
    missing = ChannelTask("train", f"file://{tmp_path}/missing", str(tmp_path / "train"))
    _, owner = start(ChannelSettings((missing,), {}, "hard", str(tmp_path / "frames")))
    kind, reason = answer(owner)
    assert kind == "failed"
    assert reason.startswith(f"the channel 'train' cannot be fetched from file://{tmp_path}/missing: ")


def test_a_lease_that_is_broken_ends_no_agent(start, settings):
    """Somebody may want to write in the moment in which the agent holds a lease."""
    process, owner = start(settings["checkpoints"])
    answer(owner)
    process.send_signal(signal.SIGIO)
    owner.sendall(pack(("finish", "20")))
    assert answer(owner) == ["finished", "0", "", ""]


class Counting(Agent):
    """Notes how its calls ended."""

    def __init__(self, owner):
        super().__init__(owner)
        self.ends = []

    def call(self, what):
        self.in_background(what, self.ends.append)


def test_calls_in_the_background_end_in_the_loop_with_what_they_raised(loop):
    owner, own = socket.socketpair()
    with owner, own:
        agent = Counting(own)
        agent.call(lambda: 1)
        agent.call(lambda: 1 // 0)
        assert agent.is_busy and agent.ends == []
        agent._loop.run_until(lambda: not agent.is_busy, SECONDS)
        results = []
        for call in agent.ends:
            try:
                results.append(call.result())
            except ZeroDivisionError:
                results.append("error")
    assert sorted(map(str, results)) == ["1", "error"]
