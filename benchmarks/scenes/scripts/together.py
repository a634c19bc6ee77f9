"""Ranks that keep step by MPI: one of them is slow, or what brings them together is."""

from __future__ import annotations

import time

from estimator_container.training import communicating, mark_step
from mpi4py import MPI
from truth import Truth, arguments, compute


def main() -> None:
    """Train in step with the others."""
    given = arguments().parse_args()
    world = MPI.COMM_WORLD
    truth = Truth(given.truth, world.rank)
    slow = given.cause == "slow rank" and world.rank == world.size - 1
    for _ in range(given.steps + 1):
        compute(given.computing_ms)
        if slow:
            with truth.injected():
                compute(given.cause_ms)
        with communicating():
            if given.cause == "allreduce":
                with truth.injected():
                    time.sleep(given.cause_ms / 1000)
            world.allreduce(1.0)
        mark_step()
        truth.step()
    truth.write()


main()
