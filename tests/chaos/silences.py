"""Run jobs with long silent phases, and look whether any is accused of standing still.

    python -m tests.chaos.silences --jobs 8 --minutes 15 [--seed S]

Jobs of several shapes run side by side, with `hang_timeout` as users have it. In each a script makes steps, and between
them is silent for one to five minutes: it compiles, evaluates on rank 0 alone, sleeps, computes in native code, waits
for a child or writes a file; and the store of checkpoints answers nothing for a while. Ends with 1 when a job does not
complete.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from estimator_sdk import Estimator, Job, JobFailed

from . import quiet_trainer
from .checkpoint_kills import store
from .faults import Shape
from .playing import own_folders

SHAPES = (Shape("process", 2, 2), Shape("process", 1, None), Shape("process", 2, None), Shape("process", 1, None))
AWAY_SECONDS = 100.0  # for which the store answers nothing
HERE_SECONDS = 60.0  # between


def started(number: int, seed: int, minutes: float, uri: str) -> Job:
    shape = SHAPES[number % len(SHAPES)]
    mpi = {"mpi": {"enabled": True, "processes_per_host": shape.processes}}
    return Estimator(
        entry_point=Path(quiet_trainer.__file__),
        backend=shape.backend,
        instance_count=shape.hosts,
        distribution=mpi if shape.processes else None,
        hyperparameters={"minutes": minutes, "seed": seed + number},
        checkpoint_s3_uri=f"{uri}/{number}",
        base_job_name="silent",
    ).fit(wait=False)


@contextmanager
def store_that_is_away_now_and_then() -> Iterator[str]:
    """The URI of a store that answers nothing for a while, again and again."""
    over = threading.Event()
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "server").mkdir()
        with store("localstack", Path(name)) as (uri, proxy):
            assert proxy is not None

            def come_and_go() -> None:
                while not over.wait(HERE_SECONDS):
                    proxy.choose = lambda request: "stall"
                    over.wait(AWAY_SECONDS)
                    proxy.choose = lambda request: None
                    proxy.release()

            thread = threading.Thread(target=come_and_go)
            thread.start()
            try:
                yield uri
            finally:
                over.set()
                thread.join()


def accused(jobs: int, minutes: float, seed: int) -> list[str]:
    """What was said of the jobs that did not complete."""
    found = []
    with own_folders(), store_that_is_away_now_and_then() as uri:
        for job in [started(number, seed, minutes, uri) for number in range(jobs)]:
            try:
                job.wait()
            except JobFailed as failed:
                found.append(f"{job.name}: {failed.verdict.text()}")
            silences = [line.data.decode().strip() for line in job.logs(stream="stdout") if b"silent " in line.data]
            print(f"{job.name} is {job.status}; {len(silences)} silences: {', '.join(silences)}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.silences", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=15.0, help="that each job runs for")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    settings = parser.parse_args()
    print(f"seed {settings.seed}", flush=True)
    found = accused(settings.jobs, settings.minutes, settings.seed)
    print("\n".join(found) or f"{settings.jobs * settings.minutes:g} minutes of jobs, and none was accused")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
