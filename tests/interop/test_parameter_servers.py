"""TensorFlow's parameter servers, when something goes wrong, and when the job is stopped."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_sdk import Estimator, Job, JobFailed
from tests.conformance.jobs import left_of
from tests.conformance.test_distributions import SERVED, SERVERS
from tests.waiting import SECONDS

pytestmark = pytest.mark.long

SAVES = SERVED.replace(
    "steps = int",
    """
import signal, sys


def save(*_):
    print("saved", weights.numpy().shape, flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, save)
steps = int""",
)


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts a job that trains for ever, and returns when it has begun to."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))

    def start(source: str) -> Job:
        (tmp_path / "train.py").write_text(source)
        steps = {"STEPS": "1000000"}
        job = Estimator(
            entry_point=tmp_path / "train.py", instance_count=2, distribution=SERVERS, environment=steps
        ).fit(wait=False)
        next(job.logs(rank=0, stream="stdout", follow=True))
        return job

    return start


def servers_of(job: Job) -> Iterator[int]:
    """The processes of this machine that are parameter servers of the job."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_one = b"estimator_container.worlds.tensorflow_server\0" in (process / "cmdline").read_bytes()
            if is_one and job.name.encode() in (process / "environ").read_bytes():
                yield int(process.name)


def test_one_that_dies_is_named(start):
    job = start(SERVED)
    os.kill(next(servers_of(job)), signal.SIGKILL)
    with pytest.raises(JobFailed, match=r"rank [13] \(ps [01]\) on algo-[12] was killed by SIGKILL"):
        job.wait(SECONDS)
    assert left_of(job) == []


def test_a_chief_that_is_stopped_can_still_save_what_they_hold(start):
    job = start(SAVES)
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert [line.data for line in job.logs(rank=0, stream="stdout")][-1] == b"saved (64, 10)\n"
    assert left_of(job) == []
