"""A training script that sums rank numbers in a loop, and fails by itself when it is told to."""

from __future__ import annotations

import argparse
import os
import sys
import time


def say(*words: object) -> None:
    """A line in one write, which a bare mpirun may leave in one piece."""
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def fail(how: str) -> None:
    """End in one of the ways that scripts end."""
    say("failing at", time.time())
    if how == "raise":
        raise ValueError("no such digit")
    if how == "exit":
        sys.exit(7)
    if how == "exit-hard":
        os._exit(9)
    if how == "abort":
        from mpi4py import MPI

        MPI.COMM_WORLD.Abort(5)
    if how == "hoard":
        kept = []
        while True:
            kept.append(os.urandom(1 << 20))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True, help="how long to go on")
    parser.add_argument("--fault", default="none", help="how to fail")
    parser.add_argument("--number", type=int, default=-1, help="which rank fails; hosts count where there is no world")
    parser.add_argument("--after", type=float, default=0.0, help="seconds from the first line to the failure")
    settings = parser.parse_args()
    begun = time.monotonic()
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        number, step = world.rank, lambda value: world.allreduce(value, MPI.MAX)
    else:
        number, step = int(os.environ["SM_CURRENT_HOST"].rpartition("-")[2]) - 1, lambda value: value
    say("up", number, os.getpid())
    while True:
        if number == settings.number and settings.fault != "none" and time.monotonic() - begun >= settings.after:
            fail(settings.fault)
        # All must find that the time is over in the same turn.
        if step(time.monotonic() - begun > settings.seconds):
            break
        time.sleep(0.01)
    say("done")


main()
