"""Machines of the pool that cannot have a host, and what is said of them."""

from __future__ import annotations

import re
import subprocess

import pytest

from estimator_sdk import JobFailed
from tests.ssh import pool, seen
from tests.ssh.submitting import submitting
from tests.waiting import SECONDS, wait_for

UP = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
BOTH_WAYS = pytest.mark.parametrize("hosts", [["host-1", "host-2"], ["host-2", "host-1"]], ids=["first", "second"])
"""The first machine is the one that is odd."""


@pytest.fixture(scope="module")
def own():
    """Three machines that no other test uses."""
    with pool.pool(3) as made:
        yield made


@pytest.fixture
def submit(own, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", own.path)
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    with submitting(tmp_path) as submitted:
        yield submitted


def left() -> list[str]:
    """What is left on the machine that is odd."""
    return [path for path in seen.left_over() if "/host-1/" in path]


@BOTH_WAYS
def test_a_machine_that_cannot_have_a_host_says_why_at_once_and_keeps_nothing(submit, own, hosts):
    folder = own.folder / "host-1" / "tmp"
    folder.chmod(0o555)
    try:
        job = submit("print('never')", hosts=hosts)
        with pytest.raises(JobFailed) as failed:
            job.wait(55)  # before a keeper that says nothing is given up
    finally:
        folder.chmod(0o1777)
    assert failed.value.verdict.message.startswith(
        "host-1 cannot have a host: [Errno 13] Permission denied: '/tmp/est-"
    )
    wait_for(lambda: not left())


def test_a_spare_machine_takes_the_place_of_one_that_cannot_have_a_host(submit, own):
    folder = own.folder / "host-1" / "tmp"
    folder.chmod(0o555)
    try:
        job = submit("print('up')", hosts=["host-2", "host-1", "host-3"], spare_hosts=1, max_retry_attempts=1)
        assert job.wait(SECONDS) == "Completed"
    finally:
        folder.chmod(0o1777)
    assert len(job.attempts) == 1
    lines = [line.data.decode() for line in job.logs(stream="toolkit")]
    said = [line for line in lines if "cannot have a host" in line]
    assert len(said) == 1
    assert re.match(r"host-1 cannot have a host: .*Permission denied.*; the job goes on without it", said[0])
    wait_for(lambda: not left())


@BOTH_WAYS
def test_what_a_machine_without_power_had_is_removed_by_the_next_job_there(submit, own, hosts):
    job = submit(UP, hosts=hosts)
    next(job.logs(stream="stdout", host=f"algo-{hosts.index('host-1') + 1}", follow=True))
    own.cut_power("host-1")
    try:
        assert left()
    finally:
        own.start_machine("host-1")
    with pytest.raises(JobFailed):
        job.wait(SECONDS)
    wait_for(lambda: not subprocess.run(["ssh", "host-1", "true"], check=False, capture_output=True).returncode)
    submit("pass", hosts=["host-1"], instance_count=1).wait(SECONDS)
    wait_for(lambda: not left())
