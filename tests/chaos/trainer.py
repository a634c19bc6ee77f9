"""A training script whose last weights are known beforehand, whatever befalls it: `undisturbed` says them.

It continues from its newest checkpoint, and fails by itself once when it is told to.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

WEIGHTS = 8
STEP_SECONDS = 0.02
STEPS_BETWEEN_CHECKPOINTS = 4
MODEL = "weights.json"

Weights = list[float]
Gather = Callable[[Weights], list[Weights]]


def gradient(weights: Weights, step: int, rank: int) -> Weights:
    """What one rank finds out in a step, from data of its own."""
    chance = random.Random(f"{step} {rank}")
    return [weight - chance.uniform(-1.0, 1.0) for weight in weights]


def after_step(weights: Weights, gradients: Sequence[Weights]) -> Weights:
    """The weights after a step; the gradients are added in the order of the ranks, so that no bit differs."""
    means = (sum(each) / len(gradients) for each in zip(*gradients, strict=True))
    return [weight - 0.1 * mean for weight, mean in zip(weights, means, strict=True)]


def undisturbed(steps: int, ranks: int) -> Weights:
    """The weights after so many steps of so many ranks that nothing befalls."""
    weights = [0.0] * WEIGHTS
    for step in range(steps):
        weights = after_step(weights, [gradient(weights, step, rank) for rank in range(ranks)])
    return weights


def restored(folder: Path) -> tuple[int, Weights]:
    """The next step, and the weights before it."""
    found = sorted(folder.glob("step-*.json"))
    if not found:
        return 0, [0.0] * WEIGHTS
    step, weights = json.loads(found[-1].read_text())
    return step, weights


def save(folder: Path, step: int, weights: Weights) -> None:
    """Keep the newest checkpoint alone."""
    old = sorted(folder.glob("step-*.json"))
    draft = folder / ".draft"
    draft.write_text(json.dumps([step, weights]))
    draft.rename(folder / f"step-{step:06}.json")
    for each in old:
        each.unlink(missing_ok=True)


def world() -> tuple[int, int, Gather]:
    """This rank, of how many, and what brings together what all have; a host without a world trains alone."""
    if "OMPI_COMM_WORLD_RANK" not in os.environ:
        return 0, 1, lambda mine: [mine]
    from mpi4py import MPI

    every = MPI.COMM_WORLD
    return every.rank, every.size, every.allgather


def fail(how: str) -> None:
    """End in one of the ways that scripts end, or never."""
    if how == "raise":
        raise ValueError("no such digit")
    if how == "exit":
        sys.exit(7)
    if how == "abort":
        from mpi4py import MPI

        MPI.COMM_WORLD.Abort(5)
    if how == "hang":
        time.sleep(3600)
    if how == "hoard":
        kept = []
        while True:
            kept.append(os.urandom(1 << 20))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--fault", default="none", help="how to fail, the first time")
    parser.add_argument("--number", type=int, default=-1, help="which rank fails; hosts count where there is no world")
    parser.add_argument("--at", type=int, default=0, help="the step in which it does")
    settings = parser.parse_args()
    rank, size, gather = world()
    host = os.environ["SM_CURRENT_HOST"]
    number = rank if size > 1 else int(host.rpartition("-")[2]) - 1
    folder, failed = Path(os.environ["SM_CHECKPOINT_DIR"]), Path(f"failed-{number}")
    first, weights = restored(folder)
    print("up", number, "from", first, flush=True)
    for step in range(first, settings.steps):
        if step == settings.at and number == settings.number and settings.fault != "none" and not failed.exists():
            failed.touch()  # on this host, which stays
            fail(settings.fault)
        weights = after_step(weights, gather(gradient(weights, step, rank)))
        time.sleep(STEP_SECONDS)
        if rank == 0 and (step + 1) % STEPS_BETWEEN_CHECKPOINTS == 0:
            save(folder, step + 1, weights)
    if rank == 0 and host == "algo-1":
        Path(os.environ["SM_MODEL_DIR"], MODEL).write_text(json.dumps(weights))


if __name__ == "__main__":
    main()
