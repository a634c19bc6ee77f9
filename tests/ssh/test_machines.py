"""Machines of the pool that cannot have a host, and what is said of them."""

from __future__ import annotations

import pytest

from estimator_sdk import JobFailed
from tests.ssh import seen
from tests.ssh.submitting import submitting
from tests.waiting import wait_for

ODD = "host-12"
"""The machine to which this is done; tests of other processes use the first ones."""


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
    wait_for(lambda: not [path for path in seen.left_over() if f"/{ODD}/" in path])
