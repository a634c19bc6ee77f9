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

ODD = "host-12"
"""The machine to which this is done; tests of other processes use the first ones."""
UP = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


def left_on_it() -> list[str]:
    return [path for path in seen.left_over() if f"/{ODD}/" in path]


@pytest.fixture
def submit(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    with submitting(tmp_path) as submitted:
        yield submitted


@pytest.fixture
def without_tmp(ssh_pool):
    """The machine, on which nobody may write to /tmp until the test is over."""
    folder = ssh_pool.folder / ODD / "tmp"
    folder.chmod(0o555)
    yield ODD
    folder.chmod(0o1777)


@pytest.mark.parametrize("hosts", [["host-2", ODD], [ODD, "host-2"]])
def test_a_machine_that_cannot_have_a_host_says_why_at_once_and_keeps_nothing(submit, without_tmp, hosts):
    job = submit("print('never')", hosts=hosts)
    with pytest.raises(JobFailed) as failed:
        job.wait(30)  # well before a keeper that says nothing is given up
    words = f"{ODD} cannot have a host: [Errno 13] Permission denied: '/tmp/est-"
    assert failed.value.verdict.message.startswith(words)
    wait_for(lambda: not left_on_it())


@pytest.mark.parametrize("hosts", [["host-2", ODD], [ODD, "host-2"]])
def test_what_is_left_where_all_of_a_job_was_killed_is_removed_by_the_next_one_there(submit, ssh_pool, hosts):
    job = submit(UP, hosts=hosts)
    next(job.logs(stream="stdout", host=f"algo-{hosts.index(ODD) + 1}", follow=True))
    for pid in ssh_pool.processes(ODD):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(JobFailed):
        job.wait(60)
    assert left_on_it()
    submit("pass", hosts=[ODD], instance_count=1).wait(60)
    wait_for(lambda: not left_on_it())
