"""A training script that makes steps, and between them one silence after the other, of kinds that are no hang.

`quiet_trainer.py --minutes N --seed S`: every rank knows the same silences by the seed. It ends with a line of all.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

STEADY_SECONDS = 15.0  # of steps between two silences
STEP_SECONDS = 0.1
LONGEST_SLEEP = 300.0  # which the laws allow after steady steps
CHILD = """
import sys, time
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    sum(range(99999))
    time.sleep(0.02)
"""
KINDS = ("compile", "evaluate", "sleep", "native", "child", "file")


def world() -> tuple[int, Callable[[], object]]:
    """This rank, and what waits for all the others; a host without a world is alone."""
    if "OMPI_COMM_WORLD_RANK" not in os.environ:
        return 0, lambda: None
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank, MPI.COMM_WORLD.barrier


def work_in_python(seconds: float) -> None:
    """As an evaluation does: many lines, little of the CPU."""
    until = time.monotonic() + seconds
    correct = 0
    while time.monotonic() < until:
        for digit in range(10):
            correct += digit % 2
            time.sleep(0.05)
        time.sleep(0.02)


def work_in_native_code(seconds: float) -> None:
    """As a compiler does: calls of which Python sees nothing."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        hashlib.pbkdf2_hmac("sha512", b"a", b"a", 3_000_000)


def keep_silent(kind: str, seconds: float, rank: int) -> None:
    """One silence; what only one rank does, the others wait for."""
    if kind == "sleep":
        time.sleep(seconds)
    elif rank == 0:
        if kind == "evaluate":
            work_in_python(seconds)
        elif kind in ("compile", "native"):
            work_in_native_code(min(seconds, 100.0))
        elif kind == "child":
            subprocess.run([sys.executable, "-c", CHILD, str(seconds)], check=True)
        else:
            with Path(os.environ["SM_OUTPUT_DATA_DIR"], "predictions").open("ab", buffering=0) as file:
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    file.write(b"7")
                    time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    settings = parser.parse_args()
    rank, meet = world()
    chance = random.Random(settings.seed)
    until = time.monotonic() + 60 * settings.minutes
    checkpoints = Path(os.environ["SM_CHECKPOINT_DIR"])
    keep_silent("compile", chance.uniform(40.0, 100.0), rank)  # before the first step, of which nothing is known
    meet()
    number = 0
    while True:
        steady = time.monotonic() + STEADY_SECONDS
        for _ in range(int(STEADY_SECONDS / STEP_SECONDS)):
            number += 1
            meet()
            if number % 10 == 0:
                print("step", number, flush=True)
            time.sleep(max(0.0, min(STEP_SECONDS, steady - time.monotonic())))
        if rank == 0:
            (checkpoints / "newest").write_text(str(number))
        kind, seconds = chance.choice(KINDS), chance.uniform(60.0, LONGEST_SLEEP)
        if time.monotonic() + seconds > until:
            break
        if rank == 0:
            print("silent", kind, round(seconds), flush=True)
        keep_silent(kind, seconds, rank)
        meet()
    print("all done", flush=True)


if __name__ == "__main__":
    main()
