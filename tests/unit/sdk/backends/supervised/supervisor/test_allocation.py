"""Whom an allocation blames, of hosts that end as they are told here."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from estimator_container.contract.names import EXIT_FRAMEWORK_ERROR, EXIT_STOPPED, Layout
from estimator_container.failures.verdict import Verdict, of_lost_host
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from estimator_sdk import Estimator
from estimator_sdk.backends.supervised.supervisor.allocation import Allocation
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
