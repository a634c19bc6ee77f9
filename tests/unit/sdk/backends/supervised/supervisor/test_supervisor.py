"""A supervisor that goes on with a job of an earlier one, as the program that it is."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from estimator_sdk import Estimator
from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.backends.supervised.client import first_record
from estimator_sdk.backends.supervised.job_folder.record import read_record, write_record
from estimator_sdk.values.home import JobFolder
from tests.waiting import SECONDS

PROGRAM = """
import sys
from pathlib import Path
from estimator_sdk.backends.supervised.job_folder.hold import Hold
from estimator_sdk.backends.supervised.supervisor.supervisor import Supervisor
from estimator_sdk.plan.plan import Plan
from estimator_sdk.values.home import JobFolder

class Line:
    has_come, is_up, has_asked = True, False, False

    def close(self):
        pass

class Hosts:
    def __init__(self, plan, folder, attempt, loop, children, on_ended):
        self.host, self.loop, self.on_ended = plan.hosts[0].name, loop, on_ended

    def line_to(self, host, on_failed, on_silence):
        return Line()

    def wait_for_machines(self):
        pass

    def start(self):
        self.loop.after(0.0, lambda: self.on_ended(self.host, 0))

    def signal(self, signum):
        pass

    def close(self):
        pass

    def wait_until_gone(self):
        pass

folder = JobFolder(Path(sys.argv[1]))
Supervisor(Plan.from_json(Path(sys.argv[2]).read_text()), folder, Hold(folder), Hosts).run()
"""


@pytest.fixture
def supervise(tmp_path, monkeypatch):
    """Runs a supervisor of a job of which an earlier one left attempts, or none; returns the job's record."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").touch()

    def run(*left, program=PROGRAM, inputs=None, **options):
        estimator = Estimator(entry_point=str(tmp_path / "train.py"), max_run=3600, **options)
        plan = estimator.plan(inputs, job_name="digits")
        folder = JobFolder.for_job("digits")
        folder.path.mkdir(parents=True, exist_ok=True)
        write_record(replace(first_record(plan), attempts=left), folder)
        (tmp_path / "plan").write_text(plan.to_json())
        words = [sys.executable, "-c", program, str(folder.path), str(tmp_path / "plan")]
        subprocess.run(words, check=True, timeout=SECONDS)
        return read_record(folder)

    return run


def test_a_job_that_was_left_goes_on_as_its_next_attempt(supervise):
    left = AttemptRecord(1, time.time() - 60, time.time() - 30, Verdict(Kind.PREEMPTED, "taken off its nodes"))
    record = supervise(left)
    assert record.status == "Completed"
    assert record.attempts[0] == left
    assert [attempt.number for attempt in record.attempts] == [1, 2]


def test_an_attempt_whose_supervisor_was_killed_has_ended_with_it(supervise):
    first, second = supervise(AttemptRecord(1, time.time() - 60)).attempts
    assert (first.verdict.kind, first.verdict.message) == ("preempted", "attempt 1 ended with its supervisor")
    assert first.ended is not None and second.verdict is None


def test_a_stop_that_comes_while_hosts_are_waited_for_between_two_attempts_stops_the_job(supervise):
    """As on Slurm, where what is left of a host on a node that is gone may take seconds to end."""
    killed = PROGRAM.replace("self.on_ended(self.host, 0)", "self.on_ended(self.host, -9)")
    wait = "os.kill(os.getpid(), 15)\n        self.loop.run_until(lambda: False, 0.2)"
    program = killed.replace("def wait_until_gone(self):\n        pass", f"def wait_until_gone(self):\n        {wait}")
    record = supervise(program=f"import os{program}", max_retry_attempts=1)
    assert (record.status, [attempt.number for attempt in record.attempts]) == ("Stopped", [1])


ON_POOL = (
    PROGRAM.replace(
        "def start(self):",
        """too_few = ""
    starts_agent = None

    @property
    def too_few_machines(self):
        return Hosts.too_few

    def lose(self):
        Hosts.too_few = "too few machines are left, 0 of 1"

    def start(self):
        if Hosts.too_few:
            raise NotStarted(Verdict(Kind.HOST_LOST, "no machine is left for algo-1"))
        self.loop.after(SECONDS, self.lose)""",
    )
    .replace(
        "import sys\n",
        """import sys
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_sdk.backends.supervised.supervisor.hosts import NotStarted
""",
        1,
    )
    .replace("self.on_ended(self.host, 0)", "self.on_ended(self.host, -9)")
)


@pytest.mark.parametrize("seconds", [0.0, 0.5], ids=["with the attempt", "during the backoff"])
def test_no_attempt_is_waited_for_that_can_have_no_machines(supervise, seconds):
    again = {"on": ["host_lost"], "max": 3, "backoff": 600}
    record = supervise(program=ON_POOL.replace("SECONDS", str(seconds)), restart_policy=again)
    assert record.status == "Failed" and len(record.attempts) == 1
    assert record.verdict.kind == Kind.HOST_LOST
    assert record.verdict.message.endswith("it is not tried again: too few machines are left, 0 of 1")


@pytest.mark.parametrize("policy", [{}, {"restart_policy": {"on": ["host_lost"]}}], ids=["once", "again"])
@pytest.mark.parametrize(
    "given",
    [{"checkpoint_s3_uri": "s3://bucket/checkpoints"}, {"inputs": {"train": "s3://bucket/train"}}],
    ids=["checkpoints", "channels"],
)
def test_nothing_is_waited_for_once_there_are_too_few_machines(supervise, monkeypatch, given, policy):
    """From a store that says nothing, which would fail the job for another reason a minute later."""
    program = ON_POOL.replace(
        "def wait_for_machines(self):\n        pass",
        "def wait_for_machines(self):\n        self.loop.after(0.3, self.lose)",
    )
    with socket.create_server(("127.0.0.1", 0)) as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{store.getsockname()[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        record = supervise(program=program, **given, **policy)
    assert (record.status, record.verdict.kind) == ("Failed", Kind.HOST_LOST)
    why = "a machine was lost before the hosts began: too few machines are left, 0 of 1"
    assert record.verdict.message == why + ("; it is not tried again" if policy else "")
