"""S6: from a fault to the typed error in the caller, with all hosts gone."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

from estimator_sdk import Job, JobFailed
from estimator_sdk.backends.supervised.job import wait_until_gone
from tests.chaos.faults import FAULTS, Shape, Target
from tests.chaos.jobs import LOOPER, estimator
from tests.chaos.leaks import Scan
from tests.chaos.playing import own_folders
from tests.chaos.rounds import judge, strike_when_there, told_at
from tests.chaos.running import RunningJob

from .. import harness, jobs, peers
from ..harness import Case, Extent, Metric, Panel, Way

PROCESSES = 2  # on each host
LONG = 600.0  # seconds that the script would go on
THEIR_PATIENCE = 900.0  # seconds
FLOOR = "bare processes, one killed"
IN_PROCESSES, IN_CONTAINERS = "fit(), in processes", "fit(), in containers"


def panel(what: str, in_processes: float, in_containers: float) -> Panel:
    targets = (
        harness.Target(IN_PROCESSES, plus=in_processes, n=(2,)),
        harness.Target(IN_CONTAINERS, plus=in_containers, n=(2,)),
    )
    return Panel(f"{what}, to the typed error", "hosts", "s", targets)


PANELS = {
    "kill-rank": panel("a rank is killed", 0.5, 1.0),
    "raise": panel("a rank raises", 0.5, 1.0),
    "kill-host": panel("a host is killed", 0.5, 1.0),
    "freeze-host": panel("a host freezes", 5.0, 5.0),
    "cut-host": panel("a host is cut off", 5.0, 5.0),
}


def bare_tree(count: int) -> float:
    """Seconds from the death of one of so many processes to the end of all, seen by their parent."""
    programs = [subprocess.Popen(["sleep", "600"]) for _ in range(count)]
    started = time.perf_counter()
    programs[-1].kill()
    programs[-1].wait()
    for each in programs:
        each.kill()
        each.wait()
    return time.perf_counter() - started


def bare_mpirun(fault: str, ranks: int) -> float:
    """Seconds from the end of the last rank to that of mpirun on one host."""
    words = ["--fault", "raise", "--number", str(ranks - 1), "--after", "0.2"] if fault == "raise" else []
    # Through mpi4py's own runner, as its documentation says: without it an exception of one rank ends nothing.
    script = [sys.executable, "-m", "mpi4py", str(LOOPER), "--seconds", str(LONG), *words]
    running = subprocess.Popen(
        [*jobs.bare_mpirun(ranks), *script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert running.stdout is not None
    try:
        said = (line.split() for line in running.stdout)
        if fault == "raise":
            struck = next(float(line[2]) for line in said if line[:2] == ["failing", "at"])
        else:
            pids = {int(line[1]): int(line[2]) for line in itertools.islice(said, ranks)}
            struck = time.time()
            os.kill(pids[ranks - 1], signal.SIGKILL)
        running.wait(60)
        return time.time() - struck
    finally:
        running.terminate()
        running.communicate()


def of_job(fault: str, hosts: int, image: str | None = None) -> float:
    """Seconds from a fault to JobFailed; what is wrong with the error, or left on the machine, is raised."""
    backend = "docker" if image else "process"
    shape = Shape(backend, hosts, PROCESSES)
    culprit = hosts * PROCESSES - 1
    scan = Scan(with_engine=image is not None)
    by_itself = {"fault": "raise", "number": culprit, "after": 0.2} if fault == "raise" else {}
    job = estimator(shape, image, {"seconds": LONG, **by_itself}).fit(wait=False)
    truth, struck = None, 0.0
    if not by_itself:
        wait_until_up(job, hosts * PROCESSES)
        truth, struck = strike_when_there(FAULTS[fault], RunningJob(job), Target(shape, culprit))
    try:
        job.wait(60)
    except JobFailed as failed:
        seconds = time.time() - (struck or told_at(job) or 0.0)
        if truth is not None and judge(truth, failed.verdict) != "correct":
            raise RuntimeError(f"{failed}, and the truth is {truth}") from None
        wait_until_gone()
        left = scan.left(job.name, 2.0)
        if left:
            raise RuntimeError(f"{job.name} left {left}") from None
        return seconds
    job.stop()
    raise RuntimeError(f"{job.name} did not fail within a minute of {fault}")


def wait_until_up(job: Job, ranks: int) -> None:
    """Until every rank has said that it is up."""
    missing = set(range(ranks))
    for line in job.logs(stream="stdout", follow=True):
        missing -= {line.rank} if line.data.startswith(b"up") else set()
        if not missing:
            return
    raise RuntimeError(f"the job ended before all ranks were up: {job.why()}")


def their_job(hosts: int) -> float:
    """Seconds from the exception of a rank to JobFailed, in an image with another toolkit, its own sshd and mpirun."""
    hyperparameters = {"seconds": LONG, "fault": "raise", "number": hosts * PROCESSES - 1, "after": 3.0}
    job = jobs.estimator(LOOPER, hosts, peers.TOOLKIT_IMAGE, PROCESSES, **hyperparameters).fit(wait=False)
    struck = 0.0
    for line in job.logs(stream="stdout", follow=True):
        _, found, rest = line.data.partition(b"failing at ")
        if found:
            struck = float(rest.split()[0])
    with contextlib.suppress(JobFailed):
        job.wait(THEIR_PATIENCE)
    return time.time() - struck


def cases(extent: Extent) -> Iterator[Case]:
    image = jobs.our_image()
    faults = ("kill-rank", "raise") if extent.quick else tuple(PANELS)
    with own_folders():
        for fault in faults:
            for hosts in extent.pick((2, 4) if fault == "kill-rank" else (2,), (2,)):
                yield Case((PANELS[fault],), hosts, tuple(ways(fault, hosts, image, extent)))


def ways(fault: str, hosts: int, image: str, extent: Extent) -> Iterator[Way]:
    ranks = hosts * PROCESSES
    yield Way(FLOOR, "floor", partial(bare_tree, ranks))
    if fault in ("kill-rank", "raise"):
        yield Way("mpirun, one host", "peer", partial(bare_mpirun, fault, ranks))
    for name, backend, chosen in ((IN_PROCESSES, "process", None), (IN_CONTAINERS, "docker", image)):
        if fault == "raise" or FAULTS[fault].fits(Shape(backend, hosts, PROCESSES)):
            yield Way(name, "ours", partial(of_job, fault, hosts, chosen))
    if fault == "raise" and not extent.quick:
        theirs = partial(their_job, hosts)
        yield Way("sagemaker-training 5.1.4", "peer", theirs, peer="sagemaker-training", at_most=1)


METRIC = Metric(
    "S6",
    "When something dies",
    "Two ranks a host. From the fault, which hits the last rank or its host, until `fit()` raises JobFailed; that the "
    "error names the kind, the "
    "host and the rank, and that nothing is left on the machine, is checked in each run. The floor is what the kernel "
    "needs: of as many bare "
    "processes one is killed, its parent hears of it, kills the others and collects them. The peers: mpirun on one "
    "host with as many ranks; "
    "and, once, a job in an image made of `sagemaker-training`, which is not taken in a quick run because it takes "
    "minutes.",
    cases,
    peers=("sagemaker-training",),
)
