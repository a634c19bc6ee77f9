"""From a fault to the typed error in the caller, with all hosts gone, on 2 hosts x 2 ranks.

    python benchmarks/faults.py [--runs 7] [--backend process docker] [--fault NAME ...] [--their-image]

The floor is what the kernel needs: of four bare processes one is killed, its parent hears of it, kills the others and
collects them. The peer is a bare `mpirun -np 4` on one host whose rank is killed, or raises. `--their-image` adds one
run of an image made of the PyPI package sagemaker-training on 2 hosts whose rank raises, which takes minutes; the image
is the one that tests/interop builds.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import measure
from estimator_container import mpi

from estimator_sdk import Estimator, Job, JobFailed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.chaos.faults import FAULTS, Shape, Target
from tests.chaos.injections import image_for, own_folders
from tests.chaos.jobs import LOOPER, estimator
from tests.chaos.leaks import Scan
from tests.chaos.rounds import judge, strike_when_there, told_at
from tests.chaos.running import RunningJob

HOSTS, PROCESSES = 2, 2
CULPRIT = 3  # the last rank, on the second host
LONG = 600.0  # seconds that the script would go on
THEIR_IMAGE = "estimator/sagemaker-training:5.1.4"
THEIR_PATIENCE = 900.0  # seconds
TARGETS = {
    ("process", "kill-rank"): 0.5,
    ("docker", "kill-rank"): 1.0,
    ("docker", "cut-host"): 5.0,
    ("process", "freeze-host"): 5.0,
    ("docker", "freeze-host"): 5.0,
}
"""Seconds, of medians."""
BY_DEFAULT = ("kill-rank", "raise", "kill-host")
FLOOR = "four bare processes, one killed"


def bare_tree() -> float:
    """Seconds from the death of one of four processes to the end of all, seen by their parent."""
    programs = [subprocess.Popen(["sleep", "600"]) for _ in range(HOSTS * PROCESSES)]
    started = time.perf_counter()
    programs[CULPRIT].kill()
    programs[CULPRIT].wait()
    for each in programs:
        each.kill()
        each.wait()
    return time.perf_counter() - started


def bare_mpirun(fault: str) -> float:
    """Seconds from the end of a rank to that of `mpirun -np 4` on one host."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    words = ["--fault", "raise", "--number", str(CULPRIT), "--after", "0.2"] if fault == "raise" else []
    argv = [mpi.find("mpirun"), *root, "--oversubscribe", "-np", str(HOSTS * PROCESSES)]
    # Through mpi4py's own runner, as its documentation says: without it an exception of one rank ends nothing.
    argv += [sys.executable, "-m", "mpi4py", str(LOOPER), "--seconds", str(LONG), *words]
    running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert running.stdout is not None
    try:
        said = (line.split() for line in running.stdout)
        if fault == "raise":
            struck = next(float(line[2]) for line in said if line[:2] == ["failing", "at"])
        else:
            pids = {int(line[1]): int(line[2]) for line in itertools.islice(said, HOSTS * PROCESSES)}
            struck = time.time()
            os.kill(pids[CULPRIT], signal.SIGKILL)
        running.wait(60)
        return time.time() - struck
    finally:
        running.terminate()
        running.communicate()


def of_job(backend: str, fault: str, image: str | None) -> float:
    """Seconds from a fault to JobFailed; what is wrong with the error, or left, is raised."""
    shape = Shape(backend, HOSTS, PROCESSES)
    target = Target(shape, CULPRIT)
    scan = Scan(with_engine=backend == "docker")
    by_itself = {"fault": "raise", "number": CULPRIT, "after": 0.2} if fault == "raise" else {}
    job = estimator(shape, image, {"seconds": LONG, **by_itself}).fit(wait=False)
    wait_until_up(job)
    truth, struck = None, 0.0
    if not by_itself:
        truth, struck = strike_when_there(FAULTS[fault], RunningJob(job), target)
    try:
        job.wait(60)
    except JobFailed as failed:
        seconds = time.time() - (struck or told_at(job) or 0.0)
        if truth is not None and judge(truth, failed.verdict) != "correct":
            raise RuntimeError(f"{failed}, and the truth is {truth}") from None
        left = scan.left(job.name, 2.0)
        if left:
            raise RuntimeError(f"{job.name} left {left}") from None
        return seconds
    job.stop()
    raise RuntimeError(f"{job.name} did not fail within a minute of {fault}")


def wait_until_up(job: Job) -> None:
    """Until every rank has said that it is up."""
    missing = set(range(HOSTS * PROCESSES))
    for line in job.logs(stream="stdout", follow=True):
        missing -= {line.rank} if line.data.startswith(b"up") else set()
        if not missing:
            return
    raise RuntimeError(f"the job ended before all ranks were up: {job.why()}")


def their_job() -> float:
    """Seconds from the exception of a rank to JobFailed, in an image with another toolkit, its own sshd and mpirun."""
    job = Estimator(
        entry_point=LOOPER,
        image_uri=THEIR_IMAGE,
        instance_count=HOSTS,
        distribution={"mpi": {"enabled": True, "processes_per_host": PROCESSES}},
        hyperparameters={"seconds": LONG, "fault": "raise", "number": CULPRIT, "after": 3.0},
        base_job_name="chaos-theirs",
    ).fit(wait=False)
    struck = 0.0
    for line in job.logs(stream="stdout", follow=True):
        _, found, rest = line.data.partition(b"failing at ")
        if found:
            struck = float(rest.split()[0])
    with contextlib.suppress(JobFailed):
        job.wait(THEIR_PATIENCE)
    return time.time() - struck


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--backend", nargs="+", choices=["process", "docker"], default=["process", "docker"])
    parser.add_argument("--fault", nargs="+", choices=[*FAULTS, "raise"], default=list(BY_DEFAULT))
    parser.add_argument("--image", help="run containers of this image, made of one of ours, and build none")
    parser.add_argument("--their-image", action="store_true", help="one run beside them; it takes minutes")
    settings = parser.parse_args()
    images = {each: settings.image or image_for(each) if each == "docker" else None for each in settings.backend}
    shape = {backend: Shape(backend, HOSTS, PROCESSES) for backend in images}
    ways: dict[str, measure.Run] = {FLOOR: bare_tree}
    peers = [fault for fault in settings.fault if fault in ("kill-rank", "raise")]
    ways |= {f"mpirun -np 4: {fault}": functools.partial(bare_mpirun, fault) for fault in peers}
    for backend, image in images.items():
        for fault in settings.fault:
            if fault == "raise" or FAULTS[fault].fits(shape[backend]):
                ways[f"{backend}: {fault}"] = functools.partial(of_job, backend, fault, image)
    with own_folders():
        taken = measure.interleaved(ways, settings.runs)
        measure.report("from the fault to the typed error, 2 hosts x 2 ranks", taken, FLOOR, "ms")
        hold_to_targets(taken)
        if settings.their_image:
            print(f"  {THEIR_IMAGE}: raise, 1 run: {their_job():.1f} s")


def hold_to_targets(taken: Mapping[str, list[float]]) -> None:
    """Say which medians are as they should be."""
    for (backend, fault), seconds in TARGETS.items():
        runs = sorted(taken.get(f"{backend}: {fault}", []))
        if runs:
            middle = runs[len(runs) // 2]
            verdict = "held" if middle <= seconds else "MISSED"
            print(f"  {backend}: {fault} {middle:.2f} s, target {seconds:g} s: {verdict}")


if __name__ == "__main__":
    main()
