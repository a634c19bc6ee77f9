"""The supervisor's side of the checkpoint agent, beside an agent that says what a test has it say."""

import signal
import time

import pytest
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from estimator_sdk import Estimator
from estimator_sdk.backends.supervised.agents import checkpoints
from estimator_sdk.backends.supervised.agents.checkpoints import Checkpoints
from estimator_sdk.values.home import JobFolder


class Silent:
    """An agent that has restored, and then says nothing any more."""

    def __init__(self):
        self.told = []

    def finish(self, value=""):
        self.told.append(value)

    def close(self):
        self.told.append("close")

    def kill(self):
        self.told.append("kill")


@pytest.fixture
def owner(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(checkpoints, "LAST_SECONDS", 0.05)
    (tmp_path / "train.py").touch()
    uri = f"file://{tmp_path}/store"
    plan = Estimator(entry_point=str(tmp_path / "train.py"), checkpoint_s3_uri=uri).plan(job_name="digits")
    loop = Loop()
    made = Checkpoints(plan, JobFolder.for_job("digits"), loop, Children(loop), None, at_hand=False)
    made._agent, made._restored = Silent(), True
    yield made
    signal.set_wakeup_fd(-1)


def test_where_no_agent_answers_it_is_said_that_nothing_is_known(owner):
    assert "is not known: what publishes it has not answered in time" in owner.finish(0.05)
    assert owner._agent.told == ["0.05", "kill"]


def test_a_stop_that_comes_while_it_finishes_leaves_it_as_long_as_any_stop_does(owner):
    owner._loop.after(0.05, lambda: owner.hasten(0.1))
    began = time.monotonic()
    owner.finish(900.0)
    assert owner._agent.told == ["900.0", "0.1", "kill"]
    assert time.monotonic() - began < 60


def test_where_nothing_finishes_there_is_nothing_to_hasten(owner):
    owner.hasten(1.0)
    owner._on_message(["finished", "0", "", ""])
    assert owner.finish(900.0) is None
    assert owner._agent.told == ["close"]
