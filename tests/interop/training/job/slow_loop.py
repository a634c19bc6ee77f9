"""Trains nothing in a loop of its own, with two ranks of mpi4py: rank 1 waits long for its input."""

from __future__ import annotations

from collections.abc import Iterator

import truth
from estimator_container.training import checkpointing, communicating, mark_step, timed_input
from mpi4py import MPI

STEPS = 100
world = MPI.COMM_WORLD


def batches() -> Iterator[int]:
    for number in range(STEPS):
        truth.sleep("input", 0.03 if world.rank == 1 else 0.01)
        yield number


for number in timed_input(batches()):
    truth.spin(0.005)
    with communicating(), truth.spending("communication"):
        world.barrier()
    mark_step()
    if number == 0:
        truth.first_step_ended()
    if number % 10 == 5 and world.rank == 0:
        with checkpointing():
            truth.sleep("checkpoint", 0.05)
truth.tell()
