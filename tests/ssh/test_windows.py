"""Windows of the timeline of a job on a pool: asked for here, recorded on its machines, and merged here."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from estimator_sdk import Estimator, EstimatorError, Job
from estimator_sdk.job.traces import trace, window
from tests.conformance.jobs import ranks_with_steps
from tests.ssh import seen
from tests.waiting import SECONDS, wait_for

TRAINING = """
import time
from estimator_container.training import mark_step
from mpi4py import MPI
while True:
    time.sleep(0.02)
    MPI.COMM_WORLD.barrier()
    mark_step()
"""
RANKS = {(host, 2 * host + local - 1) for host in (1, 2, 3) for local in (0, 1)}
"""As a timeline has them."""


@pytest.fixture
def job(tmp_path, monkeypatch, ssh_pool):
    """One of two ranks on each of three machines, which trains until it is stopped."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text(TRAINING)
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    pool = {"hosts": ssh_pool.names, "instance_count": 3, "distribution": mpi}
    started = Estimator(entry_point=str(tmp_path / "train.py"), **pool).fit(wait=False)
    try:
        wait_for(lambda: ranks_with_steps(trace.make(started.started)) == RANKS, 180, otherwise=started.why)
        yield started
    finally:
        started.stop()
        started.wait(SECONDS)


def begun_windows(bases: Iterable[Path]) -> list[int]:
    """How many windows each host has begun."""
    return [len(list((base / "output/logs/timelines").glob("?????????????.json"))) for base in bases]


def base_directories(job: Job) -> dict[str, Path]:
    return {host: base for host, (_, base) in seen.toolkits(job).items()}


def test_every_rank_of_every_machine_is_recorded_by_one_clock_and_kept_with_the_job(job, monkeypatch):
    monkeypatch.setattr(window, "CLOCK_SECONDS", 60.0)
    for _ in range(2):
        found = window.record(job.started, 3.0)
        assert ranks_with_steps(found.trace) == RANKS
        assert set(found.trace["otherData"]["clock_offsets"]) == {"algo-2", "algo-3"}
        assert found.notes == (
            "rank 0, rank 1, rank 2, rank 3 and others: neither Horovod nor PyTorch runs in it, so there are its steps "
            "alone",
        )
        there = seen.folder(job) / "hosts/algo-1/output/data" / window.FILE
        for kept in (Path(found.kept or ""), there):
            assert json.loads(kept.read_text()) == found.trace
        assert window.kept(job.started) == Path(found.kept or "")
    assert job.status == "InProgress"


def record_until_the_job_is_stopped(job: Job) -> None:
    with contextlib.suppress(EstimatorError):
        window.record(job.started, 60.0)


def test_a_request_that_no_host_has_taken_is_taken_back_everywhere(job, monkeypatch):
    first = threading.Thread(target=record_until_the_job_is_stopped, args=(Job.attach(job.name),))
    first.start()
    bases = base_directories(job)
    wait_for(lambda: begun_windows(seen.folder(job) / "hosts" / host for host in bases) == [1, 1, 1])
    monkeypatch.setattr(window, "BEGIN_SECONDS", 3.0)
    with pytest.raises(EstimatorError, match="did not begin the window in 3 s: .*another window is recorded"):
        window.record(job.started, 1.0)
    wait_for(lambda: not any((base / "input/config/timeline").exists() for base in bases.values()))
    assert begun_windows(bases.values()) == [1, 1, 1]
    job.stop()
    first.join()
