"""Whom an allocation blames, of hosts that end as they are told here."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from estimator_container.contract.names import EXIT_FRAMEWORK_ERROR, EXIT_STOPPED, Layout
from estimator_container.failures.verdict import Verdict, of_lost_host, of_silent_host
from estimator_container.host.coordination import restart
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from estimator_sdk import Estimator
from estimator_sdk.backends.supervised.supervisor import allocation as allocation_module
from estimator_sdk.backends.supervised.supervisor.allocation import WORD_SECONDS, Allocation
from estimator_sdk.backends.supervised.supervisor.hosts import NotStarted
from estimator_sdk.values.home import JobFolder


class ThreeHosts:
    """The third is killed before it has joined the first; the second stops, and the first loses it by that."""

    def __init__(self, plan, folder, attempt, loop, children, on_ended):
        self._folder, self._loop, self._ended = folder, loop, on_ended
        self.says_before: Verdict | None = None
        """What the first host has said when the third one is killed."""

    def start(self):
        if self.says_before is not None:
            self._say(self.says_before)
        self._ended("algo-3", -signal.SIGKILL)

    def signal(self, signum):
        if signum == signal.SIGTERM:
            self._ended("algo-2", EXIT_STOPPED)
            if self.says_before is None:
                self._say(of_lost_host("algo-2", "algo-1"))
            self._ended("algo-1", EXIT_FRAMEWORK_ERROR)

    def close(self):
        pass

    def _say(self, found):
        path = Path(Layout(str(self._folder.host("algo-1"))).verdict)
        path.parent.mkdir(parents=True)
        path.write_text(found.to_json())


@pytest.fixture
def loop():
    yield Loop()
    signal.set_wakeup_fd(-1)


@pytest.fixture
def allocation(loop, tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").touch()
    plan = Estimator(entry_point=str(tmp_path / "train.py"), instance_count=3).plan(job_name="digits")
    return Allocation(plan, JobFolder.for_job("digits"), 1, loop, Children(loop), ThreeHosts)


def test_a_host_that_was_told_to_end_is_not_blamed_for_one_that_was_killed(allocation):
    allocation.run(1)
    found = allocation.verdict
    assert (found.host, found.message) == ("algo-3", "algo-3 was killed by SIGKILL")


def test_what_the_first_host_has_said_before_counts(allocation):
    allocation.hosts.says_before = of_lost_host("algo-3", "algo-1")
    allocation.run(1)
    assert allocation.verdict.message == of_lost_host("algo-3", "algo-1").message


def test_the_first_host_is_not_blamed_by_the_one_that_it_has_lost(allocation):
    """Who was cut off for a while may say that the first host is gone, before that one says so of it."""
    found = of_silent_host("algo-3", "algo-1", 2.5)
    allocation._first_host_lost("algo-3", of_lost_host("algo-1", "algo-3"), "", ())
    allocation._attempt_failed(found, "10.0.0.1:4711", ("algo-3",))
    assert (allocation.stand_by, allocation.verdict) == (True, found)


def test_the_first_host_is_blamed_once_all_others_wait_for_another_one(allocation):
    allocation.hosts.first_host_at = ""
    found = of_silent_host("algo-1", "algo-2", 2.5)
    allocation._first_host_lost("algo-2", found, "", ())
    assert not allocation.stand_by
    allocation._first_host_lost("algo-3", of_silent_host("algo-1", "algo-3", 2.5), "", ())
    assert (allocation.stand_by, allocation.verdict) == (True, found)


def test_what_the_first_host_has_asked_is_no_question_after_its_end(allocation):
    """The two come by different ways: the attempt has failed, and no other one begins on a host that is gone."""
    found = of_lost_host("algo-3", "algo-1")
    allocation._host_ended("algo-1", -signal.SIGKILL)
    allocation._attempt_failed(found, "10.0.0.1:4711", ("algo-3",))
    assert not allocation.stand_by and allocation.verdict.message == f"{found.message}; algo-1 is lost too"


def test_hosts_have_longer_to_say_what_becomes_of_the_job_than_to_end_an_attempt():
    assert WORD_SECONDS > restart.CLEAR_SECONDS


def test_hosts_are_not_ended_while_one_has_asked_what_follows_and_that_cannot_be_told_yet(
    allocation, loop, monkeypatch
):
    """What was written may have to be published first, which takes as long as it takes."""
    monkeypatch.setattr(allocation_module, "LOST_SECONDS", 0.01)
    monkeypatch.setattr(allocation_module, "ASKED_SECONDS", 0.01)
    told: list[int] = []
    allocation.hosts.signal = told.append
    line = SimpleNamespace(has_come=False, is_up=True, has_asked=True)
    others = SimpleNamespace(has_come=False, is_up=True, has_asked=False)
    allocation._lines = {"algo-1": line, "algo-2": others, "algo-3": others}
    allocation._host_ended("algo-3", -signal.SIGKILL)
    loop.run_until(lambda: bool(told), 0.3)
    assert told == []
    line.has_asked = False
    loop.run_until(lambda: bool(told), 10.0)
    assert told == [signal.SIGTERM]


def test_hosts_that_are_told_to_end_do_not_stand_by(allocation):
    """They may have asked just before."""
    allocation.hosts.signal = lambda signum: None
    allocation.stop(1000.0)
    allocation._attempt_failed(of_lost_host("algo-3", "algo-1"), "10.0.0.1:4711", ("algo-3",))
    assert not allocation.stand_by


def test_all_that_are_frozen_are_named_in_whatever_order_that_is_seen(allocation, monkeypatch):
    """Of three, one is left, and waits for another first host; the supervisor misses the second before the first."""
    allocation.hosts.first_host_at = ""
    allocation._lines = dict.fromkeys(
        ("algo-1", "algo-2", "algo-3"), SimpleNamespace(has_come=True, is_up=True, has_asked=False)
    )
    monkeypatch.setattr(
        allocation.hosts, "end", lambda host: allocation._host_ended(host, -signal.SIGKILL), raising=False
    )
    allocation._first_host_lost("algo-3", of_silent_host("algo-1", "algo-3", 2.5), "", ())
    allocation._host_silent("algo-2")
    assert allocation.stand_by
    assert allocation.verdict.host == "algo-2" and "; algo-1 is lost too" in allocation.verdict.message


def test_no_attempt_begins_where_another_host_is_lost_while_it_is_prepared(allocation):
    """Or what the first host says of that would be taken for the end of the attempt that begins."""
    found = of_lost_host("algo-3", "algo-1")

    class Line:
        has_come, is_up, has_asked, begun = True, True, False, []

        def prepare_again(self):
            allocation._attempt_failed(found, "10.0.0.1:4712", ("algo-2", "algo-3"))

        def begin_again(self, so_far, first_host_at=""):
            self.begun.append(first_host_at)

    allocation.has_started, allocation._lines = True, dict.fromkeys(("algo-1", "algo-2", "algo-3"), Line())
    allocation._attempt_failed(found, "10.0.0.1:4711", ("algo-3",))
    allocation._replaced = ("algo-3",)
    with pytest.raises(NotStarted):
        allocation.run(2)
    assert Line.begun == []
