"""How much training slows down while checkpoints are published: all CPUs busy, one file rewritten every few seconds.

    python benchmarks/publish_slowdown.py [--runs 7] [--size 64] [--every 4] [--seconds 12]

A process for each CPU multiplies matrices and counts. One of them also writes a checkpoint of SIZE MB every EVERY
seconds, in all ways alike; what differs is who brings it to a folder that stands for the store: nobody (the floor), the
agent, or a thread of the training process itself, as scripts do it by hand. The figure is the time of one step. All
folders are in memory, for a disk that is busy holds up whoever writes, and what is asked is who takes the CPUs.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Callable
from pathlib import Path

import measure
from estimator_container.checkpoints import agent
from estimator_container.links import Link
from estimator_container.loop import Loop

MB = 1_000_000
MEMORY = "/dev/shm"


def train(seconds: float, write: Callable[[], None] | None, every: float, steps: multiprocessing.Value) -> None:
    """Work for so many seconds, writing a checkpoint now and then; count the steps."""
    import numpy as np  # not before `main` has said that it is to use one thread

    matrix = np.random.default_rng(0).normal(size=(128, 128))
    started = written = time.monotonic()
    count = 0
    while (now := time.monotonic()) - started < seconds:
        if write is not None and now - written >= every:
            written = now
            write()
        matrix = matrix @ matrix
        matrix /= np.abs(matrix).max()
        count += 1
    with steps.get_lock():
        steps.value += count


def time_of_a_step(seconds: float, every: float, write: Callable[[], None]) -> float:
    """Mean seconds of a step, over all processes."""
    steps = multiprocessing.Value("q", 0)
    cpus = len(os.sched_getaffinity(0))
    each = [
        multiprocessing.Process(target=train, args=(seconds, write if number == 0 else None, every, steps))
        for number in range(cpus)
    ]
    for process in each:
        process.start()
    for process in each:
        process.join()
    return seconds * cpus / steps.value


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--size", type=int, default=64, help="MB")
    parser.add_argument("--every", type=float, default=4.0, help="seconds between two checkpoints")
    parser.add_argument("--seconds", type=float, default=12.0, help="of one run")
    settings = parser.parse_args()
    data = os.urandom(settings.size * MB)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # the processes are the parallelism

    def write(folder: Path) -> None:
        (folder / "draft").write_bytes(data)
        (folder / "draft").rename(folder / "checkpoint")

    def alone() -> float:
        with tempfile.TemporaryDirectory(dir=MEMORY) as name:
            return time_of_a_step(settings.seconds, settings.every, lambda: write(Path(name)))

    def by_a_thread() -> float:
        with tempfile.TemporaryDirectory(dir=MEMORY) as name, tempfile.TemporaryDirectory(dir=MEMORY) as store:

            def write_and_copy() -> None:
                write(Path(name))
                copy = (Path(name, "checkpoint"), Path(store, "checkpoint"))
                threading.Thread(target=shutil.copyfile, args=copy, daemon=True).start()

            return time_of_a_step(settings.seconds, settings.every, write_and_copy)

    def by_the_agent() -> float:
        with tempfile.TemporaryDirectory(dir=MEMORY) as name, tempfile.TemporaryDirectory(dir=MEMORY) as store:
            watched = Path(name, "checkpoints")
            watched.mkdir()
            stop = start_agent(watched, f"file://{store}", Path(name))
            try:
                return time_of_a_step(settings.seconds, settings.every, lambda: write(watched))
            finally:
                stop()

    ways = {"nobody publishes": alone, "a thread copies": by_a_thread, "the agent publishes": by_the_agent}
    taken = measure.interleaved(ways, settings.runs)
    title = f"one training step, all CPUs busy, {settings.size} MB every {settings.every:g} s"
    measure.report(title, taken, "nobody publishes", "us")


def start_agent(folder: Path, uri: str, scratch: Path) -> Callable[[], None]:
    """A real agent for the folder; returns what ends it."""
    loop, said = Loop(), list[list[str]]()
    ours, theirs = socket.socketpair()
    argv = [sys.executable, "-I", "-S", agent.__file__, str(theirs.fileno()), json.dumps(sys.path)]
    with theirs:
        process = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
    link = Link(loop, ours, lambda link, message: said.append(message), lambda link: None)
    alive, frames = str(scratch / "alive"), str(scratch / "frames")
    settings = agent.Settings(uri, str(folder), (), alive, frames, "benchmark", restore=True)
    link.send("settings", settings.to_json())
    loop.run_until(lambda: bool(said), 30)

    def stop() -> None:
        link.send("finish", "60")
        process.wait(90)
        link.close()

    return stop


if __name__ == "__main__":
    main()
