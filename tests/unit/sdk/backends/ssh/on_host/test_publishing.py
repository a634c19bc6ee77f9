"""The agent of checkpoints where the first host is: both ends of it, and a real agent."""

import os
import signal
from pathlib import Path

import pytest
from estimator_container.agents.checkpoints.restore import newest_whole_manifest
from estimator_container.agents.checkpoints.settings import CheckpointSettings
from estimator_container.contract.names import Layout
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop
from estimator_container.storage import open_store

from estimator_sdk.backends.ssh.on_host import publishing, words
from estimator_sdk.backends.ssh.on_host.publishing import AgentElsewhere, KeptAgent
from tests.waiting import SECONDS


class Machines:
    """A supervisor, and one machine with a host."""

    def __init__(self, folder):
        self.loop = Loop()
        self.children = Children(self.loop)
        self.layout = Layout(str(folder / "host"))
        self.uri = f"file://{folder / 'store'}"
        self.heard, self.ended, self.begun = [], [], []
        self.kept = KeptAgent(
            self.loop, self.children, lambda kind, *fields: self.agent.agent_says("a", kind, [*fields])
        )
        self.agent = AgentElsewhere(self.loop, self._to_keeper)

    def _to_keeper(self, machine, kind, *fields):
        assert machine == "a"
        if kind == words.AGENT:
            self.kept.begin(*fields, self.layout)
        else:
            self.kept.tell(*fields)

    def own(self, **settings):
        given = CheckpointSettings(self.uri, "", (), "", "", "job", **{"restore": False, **settings})
        self.agent.start(given, self.heard.append, self.ended.append)

    def begin(self):
        self.agent.begin("a", self.begun.append)

    def until(self, done):
        self.loop.run_until(done, SECONDS)
        assert done()

    def finish(self):
        self.agent.finish(str(SECONDS))
        self.until(lambda: self.heard[-1][0] == "finished")
        return self.heard[-1]

    def write(self, text):
        Path(self.layout.checkpoints, "model").write_text(text)

    def published(self):
        return newest_whole_manifest(open_store(self.uri))


@pytest.fixture
def machines(tmp_path):
    made = Machines(tmp_path)
    yield made
    made.agent.kill()
    made.until(lambda: not made.children.pids)


def test_what_the_host_writes_is_published_from_there(machines):
    machines.own()
    assert machines.begun == []
    machines.begin()
    machines.until(lambda: machines.begun)
    assert machines.begun == [None]
    machines.write("new")
    assert machines.finish()[:3] == ["finished", "0", ""]
    assert [file.path for file in machines.published().files] == ["model"]


def test_a_folder_that_is_another_one_where_the_host_is_is_refused(machines):
    machines.own(after=5)
    machines.begin()
    machines.until(lambda: machines.begun)
    assert "is not the folder here that it is where the job was started; give a folder" in machines.begun[0]


def test_an_agent_that_is_killed_is_followed_by_another_at_once(machines):
    machines.own()
    machines.begin()
    machines.until(lambda: machines.begun)
    (pid,) = machines.children.pids
    os.kill(pid, signal.SIGKILL)
    machines.until(lambda: machines.ended)
    machines.write("new")
    machines.own()
    machines.until(lambda: machines.heard[1:])
    machines.finish()
    assert machines.published() is not None


def test_what_has_not_begun_has_nothing_to_publish_and_what_was_lost_says_so(machines):
    machines.own()
    assert machines.finish() == ["finished", "0", "", ""]
    machines.begin()
    machines.until(lambda: machines.begun)
    over = []
    machines.agent.finish_then(600, lambda: over.append(True))
    machines.agent.machine_lost("another")
    assert not over
    machines.agent.machine_lost("a")
    assert over and machines.ended == [-signal.SIGKILL]
    _, size, reason, newest = machines.finish()
    assert (size, newest) == ("0", "") and "lost with the machine" in reason
    machines.kept.tell("kill", "")


def test_without_an_owner_nothing_is_waited_for(machines):
    over = []
    machines.begin()
    machines.agent.finish_then(600, lambda: over.append(True))
    assert (machines.begun, over, machines.agent.has_owner) == ([None], [True], False)


def test_all_who_wait_until_it_has_finished_are_called(machines):
    """As where several hosts say at once that the first one is lost."""
    machines.own()
    machines.begin()
    machines.until(lambda: machines.begun)
    machines.write("whole")
    called = []
    machines.agent.finish_then(SECONDS, lambda: called.append("algo-2"))
    machines.agent.finish_then(SECONDS, lambda: called.append("algo-3"))
    machines.until(lambda: len(called) == 2)
    assert called == ["algo-2", "algo-3"]
    assert [said[0] for said in machines.heard].count("finished") == 1


def test_one_that_ends_before_it_has_begun_is_followed_by_another_that_is_heard(machines):
    machines.own()
    machines.begin()
    machines.kept.tell("kill", "")
    machines.agent.agent_says("a", words.AGENT_ENDED, ["-9"])
    machines.own()  # as the supervisor does where one has ended
    machines.until(lambda: machines.begun)
    assert machines.begun == [None]


def test_nobody_waits_for_one_that_has_said_that_it_cannot_publish(machines):
    machines.own()
    machines.begin()
    machines.until(lambda: machines.begun)
    machines.agent.agent_says("a", words.AGENT_SAYS, ["failed", "the store is away"])
    over = []
    machines.agent.finish_then(600, lambda: over.append(True))
    assert over == [True]


def test_one_that_does_not_answer_is_not_waited_for_for_ever(machines, monkeypatch):
    monkeypatch.setattr(publishing, "ANSWER_SECONDS", 0.05)
    machines.own()
    machines.begin()
    machines.until(lambda: machines.begun)
    (pid,) = machines.children.pids
    os.kill(pid, signal.SIGSTOP)
    over = []
    machines.agent.finish_then(0.05, lambda: over.append(True))
    machines.until(lambda: over)
    assert over == [True] and machines.heard[-1][0] != "finished"


def test_nobody_waits_for_one_whose_owner_has_left_it(machines):
    machines.own()
    machines.begin()
    machines.until(lambda: machines.begun)
    over = []
    machines.agent.finish_then(600, lambda: over.append(True))
    machines.agent.kill()
    assert over == [True]
