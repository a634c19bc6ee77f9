"""E2 and E3 under random faults; `python -m tests.chaos.injections --count 100` does more of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from estimator_sdk import JobFailed
from tests.waiting import SECONDS

from .faults import Shape, Target, of_rank
from .injections import inject
from .jobs import estimator
from .leaks import Scan
from .playing import image_for, own_folders
from .soak import soak

SEED = 20261122
ROUNDS = 8


@pytest.fixture(scope="module")
def image():
    return image_for("docker")


@pytest.mark.parametrize("backend", ["process", "docker"])
def test_a_random_fault_is_named_and_nothing_is_left(request, backend):
    image = request.getfixturevalue("image") if backend == "docker" else None
    print(f"seed {SEED}")
    with own_folders():
        tally = inject(backend, range(ROUNDS), SEED, image)
    print(tally)
    assert set(tally.grades) <= {"correct", "vague"}  # a larger number is held to a share of correct ones
    assert [each.left for each in tally.outcomes] == [[]] * ROUNDS


def test_a_fault_is_aimed_by_hand():
    shape = Shape("process", 2, 2)
    with own_folders():
        job = estimator(shape, None, {"seconds": 600}).fit(wait=False)
        next(line for line in job.logs(rank=3, stream="stdout", follow=True) if line.data.startswith(b"up"))
        argv = [sys.executable, "-m", "tests.chaos", job.name, "kill-rank", "--rank", "3"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.stdout.endswith(f"kill-rank: {of_rank(Target(shape, 3), 'signal')}\n"), done.stderr
        with pytest.raises(JobFailed) as failed:
            job.wait(SECONDS)
        found = failed.value.verdict
        assert (found.kind, found.host, found.rank) == ("signal", "algo-2", 3)
        again = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert (again.returncode, again.stdout) == (1, "")
        assert "does not run" in again.stderr


def test_what_is_left_is_found():
    with own_folders():
        scan = Scan(with_engine=False)
        job = estimator(Shape("process", 1, None), None, {"seconds": 600}).fit(wait=False)
        assert any(each.startswith("process ") for each in scan.left(job.name, 0.0))
        job.stop()
        assert job.wait(SECONDS) == "Stopped"
        assert scan.left(job.name, SECONDS) == []


def test_jobs_side_by_side_leave_nothing_and_grow_nothing():
    tally = soak({"process": None}, seconds=5.0, at_once=3, seed=SEED)
    print(tally)
    assert tally.problems == []
    assert tally.events.total() >= 9
