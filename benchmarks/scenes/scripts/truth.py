"""What a scene knows of itself by its own clock: how much of its steps is the cause that was put into it.

Nothing of the toolkit is used here, so that what the doctor says has something to be held against.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Truth:
    """The time of all steps after the first one, and of what was put into them."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._file = folder / f"{rank}.json"
        self._steps = -1
        self._began = self._ended = self._injected = 0.0

    @contextmanager
    def injected(self) -> Iterator[None]:
        """Count what is done in here as the cause."""
        began = time.perf_counter()
        yield
        self._injected += time.perf_counter() - began

    def count(self, seconds: float) -> None:
        """Count seconds as the cause that were not spent in one place."""
        self._injected += seconds

    def step(self) -> None:
        """Say that a step has ended."""
        self._ended = time.perf_counter()
        self._steps += 1
        if self._steps == 0:
            self._began, self._injected = self._ended, 0.0

    def write(self) -> None:
        """Write down what was seen: the steps, how long they took, and how long the cause did."""
        seen = {"steps": self._steps, "seconds": self._ended - self._began, "injected": self._injected}
        self._file.write_text(json.dumps(seen), encoding="utf-8")


def told_by_profiler(folder: Path, says: str) -> None:
    """Write down what the profiler of a framework says of this scene."""
    (folder / "profiler.json").write_text(json.dumps({"says": says}), encoding="utf-8")


def arguments() -> argparse.ArgumentParser:
    """Return a parser of what every scene is given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--truth", type=Path, required=True)
    parser.add_argument("--cause", required=True)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--computing-ms", type=float, default=40)
    parser.add_argument("--cause-ms", type=float, default=0)
    return parser


def compute(milliseconds: float) -> None:
    """Keep a CPU busy for so long by the clock on the wall."""
    until = time.perf_counter() + milliseconds / 1000
    while time.perf_counter() < until:
        pass


def work(milliseconds: float) -> float:
    """Use so much time of a CPU, and return how many seconds longer it took than that."""
    began, used = time.perf_counter(), time.thread_time()
    while time.thread_time() - used < milliseconds / 1000:
        pass
    return time.perf_counter() - began - milliseconds / 1000


def my_rank() -> int:
    """Return the rank of this process by what Open MPI sets, 0 without."""
    return int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
