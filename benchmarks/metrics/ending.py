"""S4: from the last line of the last rank to the return of `fit()`."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import docker

from .. import jobs, machines
from ..harness import Case, Extent, Metric, Panel, Target, Way

TARGETS = (Target("fit()", plus=0.3, n=(2,)), Target("fit()", plus=1.0, n=(16,)))
PROCESSES = Panel("from the last rank's end to the return, in processes", "hosts", "s", TARGETS)
CONTAINERS = Panel("from the last rank's end to the return, in containers", "hosts", "s", TARGETS)
GONE = Panel("from the last rank's end until containers and network are removed", "hosts", "s")


def after(told: jobs.Moments) -> float:
    return told.returned - told.ended


def ours(count: int) -> float:
    return after(jobs.hello(jobs.estimator(jobs.HELLO, count), count))


def ours_in_containers(image: str, count: int) -> tuple[float, float]:
    told = jobs.hello(jobs.estimator(jobs.HELLO, count, image), count)
    return after(told), told.gone - told.ended


def mpirun(count: int) -> float:
    return after(jobs.by_hand(jobs.quickest_mpirun(count), count))


def theirs(count: int) -> tuple[float, None]:
    """Its containers stay there."""
    return after(jobs.sagemaker_local(count)), None


def bare_processes(count: int) -> float:
    """Seconds in which as many processes that end are collected."""
    each = [subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE) for _ in range(count)]
    started = time.perf_counter()
    for process in each:
        process.communicate()
    return time.perf_counter() - started


def bare_containers(image: str, count: int) -> tuple[float, float]:
    """Seconds from the last word of as many containers, which end together, until all have.

    And until they and their network are gone, and what they said is in hand.
    """
    with tempfile.TemporaryDirectory() as gate:
        until_told = "until [ -e /gate/open ]; do sleep 0.02; done; date +%s.%N"
        with machines.bare_containers(image, count, ["sh", "-c", until_told], {gate: "/gate"}) as containers:
            chosen = {"container": [each.id for each in containers], "event": "die"}
            with contextlib.closing(docker.from_env().events(filters=chosen, decode=True)) as ends:
                Path(gate, "open").touch()
                for _ in zip(containers, ends, strict=False):
                    ended = time.time()
            for each in containers:
                each.wait(timeout=jobs.PATIENCE)
            said = b"".join(each.logs() for each in containers).decode()
        last = max(float(at) for at in re.findall(r"\d+\.\d+", said))
        return ended - last, time.time() - last


def cases(extent: Extent) -> Iterator[Case]:
    image = jobs.our_image()
    with jobs.own_home():
        for count in extent.pick((2, 4, 8, 16), (2, 4)):
            ways = (
                Way("processes collected", "floor", partial(bare_processes, count)),
                Way("mpirun, one host", "peer", partial(mpirun, count)),
                Way("fit()", "ours", partial(ours, count)),
            )
            yield Case((PROCESSES,), count, ways)
        for count in extent.pick((2, 8, 16), (2,)):
            ways = (
                Way("bare containers", "floor", partial(bare_containers, image, count)),
                Way("fit()", "ours", partial(ours_in_containers, image, count)),
            )
            if count == 2 and not extent.quick:
                local = partial(theirs, count)
                ways += (Way("SageMaker local mode", "peer", local, peer="sagemaker", at_most=1),)
            yield Case((CONTAINERS, GONE), count, ways)


METRIC = Metric(
    "S4",
    "The end",
    "From when the last rank has left MPI_Finalize until `fit()` returns, with all logs and outputs in place. What the "
    "engine then still removes of a job's containers and network is removed beside what the caller does next, and a "
    "program that ends waits for it: the last panel has that, and holds it to nothing. The floors: as many processes "
    "that are told to end and collected; as many containers that are up and end together, from their last word until "
    "the engine's events have told of all, and, in the last panel, until they and their network are gone. SageMaker's "
    "toolkit sleeps for 30 s at the end of an MPI job.",
    cases,
    peers=("sagemaker", "docker-compose", "sagemaker-training"),
)
