"""How long `estimator ps` takes where ten thousand jobs have ended: a whole process, beside the least that it could do.

The bounds are those of a machine that is quiet. On one that is not, the floor takes longer too, and they grow with it;
one of some readings has to keep to them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.backends.supervised.job_folder.record import Process, Record, write_record
from estimator_sdk.values.home import JobFolder, jobs_folder, list_cache

JOBS = 10_000
GONE = Process(1 << 22, "1")
"""No process has a number as high as the kernel's limit."""
DONE = Record("done", "Completed", "process", ("algo-1", "algo-2"), 1.7e9, ended=1.7e9 + 60, supervisor=GONE)
ATTEMPT = AttemptRecord(1, 1.7e9, 1.7e9 + 60)
READINGS = 5


class Bound(NamedTuple):
    """A time that `estimator ps` may take."""

    seconds: float
    floor: str
    """The program that does the least for it; it is given the folder of the jobs, and their list."""
    floor_seconds: float
    """What that takes on a machine of two CPUs that is quiet."""


WARM = Bound(
    0.3,
    """
import json, os, sys
jobs, known = sys.argv[1], json.loads(open(sys.argv[2]).read().partition("\\n")[2])
for name in os.listdir(jobs):
    os.stat(f"{jobs}/{name}/record.json")
    print(name, *known[name])
""",
    0.11,
)
"""The list is there, and every job in it is as it was."""
FROM_NOTHING = Bound(
    3.0,
    """
import json, os, sys
jobs = sys.argv[1]
for name in os.listdir(jobs):
    print(name, json.load(open(f"{jobs}/{name}/record.json"))["status"])
""",
    0.22,
)
"""There is no list: every record is read."""


@pytest.fixture(scope="module")
def many_jobs(tmp_path_factory) -> Path:
    """A home of so many jobs that have ended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTIMATOR_HOME", str(tmp_path_factory.mktemp("many") / "home"))
        patch.setattr(os, "fsync", lambda fd: None)  # which takes most of the time, and is not what is timed
        for number in range(JOBS):
            name = f"train-{number:05}"
            folder = JobFolder.for_job(name)
            folder.path.mkdir(parents=True)
            times = {"created": DONE.created + number, "ended": DONE.created + number + 60}
            write_record(replace(DONE, name=name, attempts=(ATTEMPT,), **times), folder)
        return jobs_folder()


@pytest.mark.parametrize("bound", [WARM, FROM_NOTHING], ids=["warm", "from nothing"])
def test_ten_thousand_jobs_are_listed_in_time(many_jobs, monkeypatch, bound):
    monkeypatch.setenv("ESTIMATOR_HOME", str(many_jobs.parent))
    ps = [sys.executable, "-m", "estimator_sdk", "ps"]
    assert len(json.loads(run([*ps, "--json"])[1])) == JOBS
    least = [sys.executable, "-I", "-S", "-c", bound.floor, str(many_jobs), str(list_cache(many_jobs))]
    seen = []
    for _ in range(READINGS):
        floor = run(least)[0]
        if bound is FROM_NOTHING:
            list_cache(many_jobs).unlink()
        seen.append((run(ps)[0], bound.seconds * max(1.0, floor / bound.floor_seconds)))
    assert any(ours <= allowed for ours, allowed in seen), f"(seconds, seconds allowed): {seen}"


def run(argv: list[str]) -> tuple[float, str]:
    """Run a program; returns the seconds from its start to its end, and what it wrote."""
    begun = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return time.monotonic() - begun, done.stdout
