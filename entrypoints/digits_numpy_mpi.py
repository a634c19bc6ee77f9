"""Recognise handwritten digits on all ranks of an MPI world, with NumPy and mpi4py alone.

    python digits_numpy_mpi.py                      # one process
    mpirun -np 4 python digits_numpy_mpi.py         # four of them

Every rank computes the gradient on its own share of the data, an allreduce averages the gradients, and every
rank makes the same step.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from pathlib import Path

# One thread a rank: the ranks share the machine's CPUs, and the matrices are small.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import checkpoints
import digits
import numpy as np
import open_mpi
from digits_network import Vector, initial_parameters, layers, loss_and_gradient
from numpy.typing import NDArray

open_mpi.find()

from mpi4py import MPI  # noqa: E402 - this import starts MPI

MOMENTUM = 0.9
SUFFIX = ".npz"


def arguments(argv: list[str]) -> argparse.Namespace:
    """Hyperparameters come as arguments, folders as arguments or from the environment of a training job."""
    model_dir = os.environ.get("SM_MODEL_DIR", "/opt/ml/model")
    checkpoint_dir = os.environ.get("SM_CHECKPOINT_DIR", "/opt/ml/checkpoints")
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32, help="images a step on each rank")
    parser.add_argument("--learning-rate", type=float, default=0.05, help="for one rank; times their number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", default=os.environ.get("SM_CHANNEL_TRAIN"), help="folder of digits.npz")
    parser.add_argument("--model-dir", type=Path, default=Path(model_dir))
    parser.add_argument("--checkpoint-dir", type=Path, default=Path(checkpoint_dir))
    return parser.parse_args(argv)


def average(world: MPI.Comm, values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean of `values` over all ranks; changes them in place."""
    world.Allreduce(MPI.IN_PLACE, values, op=MPI.SUM)
    values /= world.size
    return values


def start(world: MPI.Comm, settings: argparse.Namespace) -> tuple[int, Vector, Vector]:
    """Epochs done, parameters and momentum, from rank 0 to all: only it needs to see the checkpoint."""
    state = None
    if world.rank == 0:
        parameters = initial_parameters(settings.seed)
        state = 0, parameters, np.zeros_like(parameters)
        if found := checkpoints.newest(settings.checkpoint_dir, SUFFIX):
            epoch, path = found
            with np.load(path) as saved:
                state = epoch, saved["parameters"], saved["momentum"]
            print(f"resuming after epoch {epoch} from {path}", flush=True)
    done, parameters, momentum = world.bcast(state)
    return done, parameters, momentum


def train_epoch(
    world: MPI.Comm, settings: argparse.Namespace, epoch: int, data: digits.Examples, state: list[Vector]
) -> list[float]:
    """One pass over this rank's share; changes the state in place; returns this rank's loss and accuracy."""
    parameters, momentum = state
    steps = digits.batches(
        len(data),
        rank=world.rank,
        size=world.size,
        batch_size=settings.batch_size,
        seed=settings.seed,
        epoch=epoch,
    )
    metrics = []
    for chosen in steps:
        loss, accuracy, gradient = loss_and_gradient(parameters, data[chosen])
        momentum *= MOMENTUM
        momentum -= settings.learning_rate * world.size * average(world, gradient)
        parameters += momentum
        metrics.append((loss, accuracy))
    return list(np.mean(metrics, axis=0))


def train(world: MPI.Comm, settings: argparse.Namespace, data: digits.Examples, test: digits.Examples) -> Vector:
    """Train from the newest checkpoint to the last epoch; returns the parameters."""
    done, parameters, momentum = start(world, settings)
    share = test[world.rank :: world.size]
    for epoch in range(done, settings.epochs):
        own = train_epoch(world, settings, epoch, data, [parameters, momentum])
        own += loss_and_gradient(parameters, share)[:2]
        loss, acc, val_loss, val_acc = average(world, np.array(own))
        if world.rank == 0:
            path = checkpoints.path_of(settings.checkpoint_dir, epoch + 1, SUFFIX)
            with checkpoints.written_whole(path) as unfinished:
                np.savez(unfinished, parameters=parameters, momentum=momentum)
            print(
                f"epoch {epoch + 1}/{settings.epochs} loss {loss:.4f} acc {acc:.4f}"
                f" val_loss {val_loss:.4f} val_acc {val_acc:.4f}",
                flush=True,
            )
    return parameters


def check_agreement(world: MPI.Comm, parameters: Vector) -> None:
    """End with an error unless every rank holds the same parameters, bit for bit."""
    checksums = world.allgather(hashlib.sha256(parameters.tobytes()).hexdigest())
    if len(set(checksums)) > 1:
        sys.exit(f"the weights differ between the {world.size} ranks: not every gradient was averaged")
    if world.rank == 0:
        print(f"weights agree on all {world.size} ranks", flush=True)


def main(argv: list[str]) -> None:
    settings = arguments(argv)
    world = MPI.COMM_WORLD
    data, test = digits.load(settings.train)
    if world.rank == 0:
        print(f"training on {len(data)} images with {world.size} ranks", flush=True)
    parameters = train(world, settings, data, test)
    check_agreement(world, parameters)
    if world.rank == 0:
        print(f"test_accuracy: {loss_and_gradient(parameters, test)[1]:.4f}", flush=True)
        with checkpoints.written_whole(settings.model_dir / "model.npz") as unfinished:
            np.savez(unfinished, **layers(parameters))


if __name__ == "__main__":
    main(sys.argv[1:])
