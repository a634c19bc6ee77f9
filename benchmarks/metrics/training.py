"""S12: samples a second of the Keras and Horovod example, beside a bare mpirun of the same script."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from estimator_sdk import Estimator, Job

from .. import jobs, machines, peers
from ..harness import FEW, ROOT, Case, Extent, Metric, Panel, Role, Target
from ..turns import Clock, Together

FOLDER = ROOT / "entrypoints"
SCRIPT = "digits_keras_horovod.py"
BEST, BEST_OF_TWO = "mpirun, one host, quickest flags", "mpirun, two hosts, bare launch agent"
HOROVODRUN = "horovodrun"
ONE, TWO = "fit(), one host", "fit(), two hosts"
PANEL = Panel(
    "training of the digits",
    "ranks",
    "samples/s",
    (Target(ONE, BEST, 0.98), Target(TWO, BEST_OF_TWO, 0.98)),
    higher_is_better=True,
)
RANKS = 2
Lines = list[tuple[float, str]]
"""When each came, in seconds, and what it says."""


def rate(epochs: int, lines: Lines, clock: Clock) -> float:
    """From the end of the first epoch, which also compiles, to that of the last."""
    ends = ends_of(lines)
    if not {1, epochs} <= set(ends):
        raise RuntimeError(f"of {epochs} epochs the first and the last were not reported: {lines[-3:]}")
    return images_of(lines) * (epochs - 1) / clock.between(ends[1], ends[epochs])


def images_of(lines: Lines) -> int:
    """How many images an epoch has."""
    # Anywhere in a line: horovodrun puts tags before, and sometimes into, what a rank writes.
    return next(int(found.group(1)) for _, text in lines if (found := re.search(r"training on (\d+) images", text)))


def ends_of(lines: Lines) -> dict[int, float]:
    """When each epoch ended, by its number."""
    return {int(number): at for at, text in lines for number in re.findall(r"epoch (\d+)/", text)}


def digits(hosts: int, epochs: int) -> Estimator:
    """The job."""
    return Estimator(
        entry_point=SCRIPT,
        source_dir=FOLDER,
        backend="process",
        instance_count=hosts,
        distribution={"mpi": {"enabled": True, "processes_per_host": RANKS // hosts}},
        hyperparameters={"epochs": epochs},
        base_job_name="bench",
    )


def ours(hosts: int, epochs: int) -> Lines:
    return lines_of(jobs.fit(digits(hosts, epochs)).job)


def lines_of(job: Job) -> Lines:
    """What the first rank has said."""
    return [(line.time_ns / 1e9, line.data.decode()) for line in job.logs(rank=0, stream="stdout")]


def by_hand(argv: list[str], epochs: int) -> Lines:
    with tempfile.TemporaryDirectory() as folder:
        script = [sys.executable, str(FOLDER / SCRIPT), f"--epochs={epochs}"]
        script += [f"--model-dir={folder}/model", f"--checkpoint-dir={folder}/checkpoints"]
        for name in ("model", "checkpoints"):
            Path(folder, name).mkdir()
        with (
            tempfile.TemporaryFile() as words,
            subprocess.Popen([*argv, *script], stdout=subprocess.PIPE, stderr=words, text=True) as running,
            jobs.ended_after(jobs.PATIENCE, running),
        ):
            assert running.stdout is not None
            lines = [(time.time(), line) for line in running.stdout]
            code = running.wait()
            words.seek(0)
            if code != 0:
                raise RuntimeError(f"{argv[0]} ended with {code}: {words.read()[-1000:]!r}")
    return lines


def cases(extent: Extent) -> Iterator[Case]:
    epochs = 20 if extent.quick else 40
    with jobs.own_home(), machines.hosts(2) as hosts:
        works: dict[str, Callable[[], Lines]] = {
            BEST: partial(by_hand, jobs.quickest_mpirun(RANKS), epochs),
            BEST_OF_TWO: partial(by_hand, hosts.mpirun(hosts.bare_agent, RANKS // 2), epochs),
            ONE: partial(ours, 1, epochs),
            TWO: partial(ours, 2, epochs),
        }
        if HOROVODRUN not in extent.left_out:
            works[HOROVODRUN] = partial(by_hand, [peers.horovodrun(), "--mpi", "-np", str(RANKS)], epochs)
        together = Together(works, lambda lines, clock: [rate(epochs, lines, clock)])
        roles: dict[str, Role] = {BEST: "floor", BEST_OF_TWO: "floor", ONE: "ours", TWO: "ours"}
        yield Case((PANEL,), RANKS, together.ways(roles, at_most=FEW))


METRIC = Metric(
    "S12",
    "Training with Keras and Horovod",
    "The digits example. Samples a second from the end of the first epoch to that of the last, from the times of its "
    "lines. The floors are mpirun of the same script: on one host with the flags that are quickest there; and on two "
    "hosts of one machine, each with a name of its own, whose ranks talk over TCP. The peer is horovodrun, on one "
    "host. Ours runs on one host and on two. All of them are under way at once and take turns of half a second, in "
    "which the others are frozen, and only their own turns count: so they find the same machine.",
    cases,
    peers=(HOROVODRUN,),
)
