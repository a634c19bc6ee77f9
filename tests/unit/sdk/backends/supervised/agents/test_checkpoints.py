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
from tests.waiting import SECONDS


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
    assert time.monotonic() - began < 600


def test_where_nothing_finishes_there_is_nothing_to_hasten(owner):
    owner.hasten(1.0)
    owner._on_message(["finished", "0", "", ""])
    assert owner.finish(900.0) is None
    assert owner._agent.told == ["close"]


def test_an_agent_that_cannot_begin_to_publish_is_followed_by_another_for_as_long_as_training_goes_on(
    owner, monkeypatch
):
    """As where one was killed while the store was away for longer than it waits."""
    monkeypatch.setattr(checkpoints, "AGAIN_SECONDS", 0.01)
    started = []

    def start(settings):
        started.append(settings.restore)
        if len(started) <= checkpoints.AGENTS + 5:
            owner._on_message(["failed", "the store is away"])
            owner._lost(1)
        return owner._agent

    monkeypatch.setattr(owner, "_start", start)
    owner._lost(-9)
    owner._loop.run_until(lambda: len(started) == checkpoints.AGENTS + 6, SECONDS)
    assert started == [False] * (checkpoints.AGENTS + 6) and not owner._is_away
    owner._on_message(["finished", "0", "", "newest"])
    assert owner.finish(900.0) is None and owner.newest == "newest"


@pytest.mark.parametrize("is_back", [True, False])
def test_what_was_not_published_while_the_store_was_away_is_tried_once_more_at_the_end(owner, monkeypatch, is_back):
    owner._on_message(["failed", "the store is away"])
    owner._lost(1)
    started = []

    def start(settings):
        started.append(Silent())
        message = ["finished", "0", "", "newest"] if is_back else ["failed", "still away"]
        started[0].finish = lambda value: owner._on_message(message)
        owner._agent = started[0]
        return owner._agent

    monkeypatch.setattr(owner, "_start", start)
    left = owner.finish(900.0)
    assert len(started) == 1
    assert left is None if is_back else "are not all in" in left and "still away" in left


def test_where_the_last_try_has_no_answer_it_is_said_why_the_one_before_had_failed(owner, monkeypatch):
    owner._on_message(["failed", "the store is away"])
    owner._lost(1)
    monkeypatch.setattr(owner, "_start", lambda settings: owner._agent)
    assert "is not known: the store is away" in owner.finish(0.05)


def test_a_stop_that_comes_while_another_is_to_be_started_leaves_it_as_long_as_any_stop_does(owner, monkeypatch):
    monkeypatch.setattr(checkpoints, "LAST_SECONDS", 0.2)
    owner._on_message(["failed", "the store is away"])
    monkeypatch.setattr(owner, "_start", lambda settings: owner._agent)
    owner._loop.after(0.05, lambda: owner.hasten(0.1))
    owner.finish(900.0)
    assert "900.0" not in owner._agent.told and "0.1" in owner._agent.told
