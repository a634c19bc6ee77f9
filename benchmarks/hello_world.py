"""A hello world on 2 hosts x 1 process: `fit()` from call to return, beside a bare `mpirun -np 2`.

    python benchmarks/hello_world.py [--runs 9] [--hosts 2]

What users write by hand is `mpirun -np N python hello.py` with the flags that Open MPI chooses. The floor is the same
on one host with the flags that start it fastest.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from pathlib import Path

import measure
from estimator_container import mpi
from estimator_container.frames import EVENT, FrameParser

from estimator_sdk import Estimator, Job

HELLO = "from mpi4py import MPI\nprint('hello from rank', MPI.COMM_WORLD.rank)\n"


def last_rank_end(job: Job) -> float:
    """When the last rank of a job ended: seconds since 1970."""
    frames = (frame for path in job.log_files for frame in FrameParser().feed(path.read_bytes()))
    return max(frame.time_ns for frame in frames if frame.stream == EVENT and b"rank_ended" in frame.data) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--hosts", type=int, default=2)
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ESTIMATOR_HOME"] = folder
        script = Path(folder, "hello.py")
        script.write_text(HELLO)
        after: list[float] = []
        estimator = Estimator(
            entry_point=script, instance_count=settings.hosts, distribution={"mpi": {"enabled": True}}
        )

        def fit() -> float:
            started = time.perf_counter()
            job = estimator.fit(logs="none")
            seconds = time.perf_counter() - started
            after.append(time.time() - last_rank_end(job))
            return seconds

        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        bare = [mpi.find("mpirun"), *root, "--oversubscribe", "-np", str(settings.hosts)]
        best = ["-mca", "pml", "ob1", "-mca", "btl", "self,vader", "-mca", "oob_tcp_if_include", "lo"]
        hello = [sys.executable, str(script)]
        floor = f"mpirun -np {settings.hosts}, best flags"
        ways: dict[str, measure.Run] = {
            floor: lambda: measure.command([*bare, *best, *hello]),
            f"mpirun -np {settings.hosts}, default flags": lambda: measure.command([*bare, *hello]),
            "fit()": fit,
        }
        with contextlib.redirect_stdout(io.StringIO()):
            taken = measure.interleaved(ways, settings.runs)
        measure.report(f"hello world, {settings.hosts} hosts x 1 process", taken, floor)
        measure.report("from the end of the last rank to the return of fit()", {"fit()": after[1:]}, "fit()")


if __name__ == "__main__":
    main()
