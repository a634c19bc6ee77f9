"""S9: how much training slows down while checkpoints are published."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from estimator_container.agents.checkpoints.settings import CheckpointSettings
from estimator_container.runtime.links import Link
from estimator_container.runtime.loop import Loop

from ..harness import FEW, MEMORY, Case, Extent, Metric, Panel, Target, processors
from ..turns import TURN, Together

MB = 64  # of a checkpoint
SIZE = MB * 1_000_000
FROZEN = 0.8 * TURN  # seconds without a step that were the turns of others
FLOOR, OURS = "nobody publishes", "the agent publishes"
PANEL = Panel("one training step, all CPUs busy", "seconds between checkpoints", "us", (Target(OURS, FLOOR, 1.01),))


def train(seconds: float, every: float, write: Callable[[], None] | None, steps: Sequence[int]) -> None:
    """Work for so many seconds, writing a checkpoint at once and then every so many; count the steps."""
    import numpy as np

    matrix = np.random.default_rng(0).normal(size=(128, 128))
    gone_on, written, count, last = 0.0, -every, 0, time.monotonic()
    while gone_on < seconds:
        now = time.monotonic()
        gone_on += now - last if now - last < FROZEN else 0.0
        last = now
        if write is not None and gone_on - written >= every:
            written = gone_on
            write()
        matrix = matrix @ matrix
        matrix /= np.abs(matrix).max()
        count += 1
    with steps.get_lock():
        steps.value += count


def time_of_a_step(seconds: float, every: float, write: Callable[[], None]) -> float:
    """Mean seconds of a step, over as many processes as there are CPUs, of which the first one writes."""
    context = multiprocessing.get_context("fork")
    steps = context.Value("q", 0)
    count = processors()
    each = [
        context.Process(target=train, args=(seconds, every, write if number == 0 else None, steps))
        for number in range(count)
    ]
    for process in each:
        process.start()
    for process in each:
        process.join()
    return seconds * count / steps.value


def write(folder: Path, data: bytes) -> None:
    (folder / "draft").write_bytes(data)
    (folder / "draft").rename(folder / "checkpoint")


def alone(seconds: float, every: float) -> float:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        return time_of_a_step(seconds, every, partial(write, Path(name), os.urandom(SIZE)))


def by_a_thread(seconds: float, every: float) -> float:
    data = os.urandom(SIZE)
    with tempfile.TemporaryDirectory(dir=MEMORY) as name, tempfile.TemporaryDirectory(dir=MEMORY) as store:

        def write_and_copy() -> None:
            write(Path(name), data)
            copy = (Path(name, "checkpoint"), Path(store, "checkpoint"))
            threading.Thread(target=shutil.copyfile, args=copy, daemon=True).start()

        return time_of_a_step(seconds, every, write_and_copy)


def by_the_agent(seconds: float, every: float) -> float:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name, tempfile.TemporaryDirectory(dir=MEMORY) as store:
        watched = Path(name, "checkpoints")
        watched.mkdir()
        stop = start_agent(watched, f"file://{store}", Path(name))
        try:
            return time_of_a_step(seconds, every, partial(write, watched, os.urandom(SIZE)))
        finally:
            stop()


def start_agent(folder: Path, uri: str, scratch: Path) -> Callable[[], None]:
    """A real agent for the folder; returns what ends it."""
    loop, said = Loop(), list[list[str]]()
    ours, theirs = socket.socketpair()
    alive, frames = str(scratch / "alive"), str(scratch / "frames")
    settings = CheckpointSettings(uri, str(folder), (), alive, frames, "benchmark", restore=True)
    argv = [sys.executable, "-I", "-S", settings.script, str(theirs.fileno()), json.dumps(sys.path)]
    with theirs:
        process = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
    link = Link(loop, ours, lambda link, message: said.append(message), lambda link: None)
    link.send("settings", settings.to_json())
    loop.run_until(lambda: bool(said), 30)

    def stop() -> None:
        link.send("finish", "60")
        process.wait(90)
        link.close()

    return stop


def cases(extent: Extent) -> Iterator[Case]:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # the processes are the parallelism; before the first import of NumPy
    for every in extent.pick((3, 10), (3,)):
        seconds = (6.0 if extent.quick else 10.0) // every * every  # each checkpoint with all that comes of it
        works: dict[str, Callable[[], float]] = {
            FLOOR: partial(alone, seconds, every),
            "a thread copies": partial(by_a_thread, seconds, every),
            OURS: partial(by_the_agent, seconds, every),
        }
        together = Together(works, lambda seconds_of_a_step, clock: [seconds_of_a_step])
        yield Case((PANEL,), every, together.ways({FLOOR: "floor", OURS: "ours"}), min(FEW, extent.runs))


METRIC = Metric(
    "S9",
    "Training while a checkpoint is published",
    f"A process for each CPU multiplies matrices of 128 x 128 and counts. One of them also writes a checkpoint of "
    f"{MB} MB every few seconds, in all ways alike; what "
    "differs is who brings it to a folder that stands for the store: nobody (the floor), a thread of the training "
    "process, as scripts do it "
    "by hand, or the agent. All folders are in memory, for a disk that is busy holds up whoever writes, and what is "
    "asked is who takes the CPUs. The ways take turns of half a second, in which the others are frozen.",
    cases,
)
