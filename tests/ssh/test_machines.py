"""Machines of the pool that cannot have a host, and what is said of them."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest

from estimator_sdk import JobFailed
from tests.ssh import seen
from tests.ssh.submitting import submitting
from tests.waiting import wait_for

# Each test does this to a machine of its own, which no other test names: they run side by side.
UP = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


def left_on(machine: str) -> list[str]:
    return [path for path in seen.left_over() if f"/{machine}/" in path]


@pytest.fixture
def submit(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    with submitting(tmp_path) as submitted:
        yield submitted


@pytest.mark.parametrize(("odd", "is_first"), [("host-5", False), ("host-6", True)])
def test_a_machine_that_cannot_have_a_host_says_why_at_once_and_keeps_nothing(submit, ssh_pool, odd, is_first):
    folder = ssh_pool.folder / odd / "tmp"
    folder.chmod(0o555)
    try:
        job = submit("print('never')", hosts=[odd, "host-2"] if is_first else ["host-2", odd])
        with pytest.raises(JobFailed) as failed:
            job.wait(55)  # before a keeper that says nothing is given up
    finally:
        folder.chmod(0o1777)
    words = f"{odd} cannot have a host: [Errno 13] Permission denied: '/tmp/est-"
    assert failed.value.verdict.message.startswith(words)
    wait_for(lambda: not left_on(odd))


@pytest.mark.parametrize(("odd", "is_first"), [("host-7", False), ("host-8", True)])
def test_what_is_left_where_all_of_a_job_was_killed_is_removed_by_the_next_one_there(submit, ssh_pool, odd, is_first):
    job = submit(UP, hosts=[odd, "host-2"] if is_first else ["host-2", odd])
    next(job.logs(stream="stdout", host="algo-1" if is_first else "algo-2", follow=True))
    for pid in ssh_pool.processes(odd):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(JobFailed):
        job.wait(60)
    assert left_on(odd)
    submit("pass", hosts=[odd], instance_count=1).wait(60)
    wait_for(lambda: not left_on(odd))
