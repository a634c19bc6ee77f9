"""Recognise handwritten digits with PyTorch, on all ranks of a Horovod world.

    python digits_pytorch_horovod.py                      # one process
    mpirun -np 4 python digits_pytorch_horovod.py         # four of them

What Horovod asks of a training script is marked with numbers, 1 to 7.
"""

from __future__ import annotations

import argparse
import sys

import checkpoints
import digits
import horovod.torch as hvd
import open_mpi
import torch
from digits_torch import SUFFIX, accuracy, arguments, checksum, loss_of, new_model, save
from torch import nn


def join_world() -> torch.device:
    """1. Meet the other ranks, and take no more than this rank's part of the machine."""
    open_mpi.find()
    hvd.init()
    torch.set_num_threads(1)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
    return torch.device("cuda")


def start(settings: argparse.Namespace, model: nn.Module) -> tuple[int, torch.optim.Optimizer]:
    """Epochs done, and the optimizer. Only rank 0 needs to see the checkpoint: the others start from its state."""
    # 2. As many ranks as there are, so much larger is the batch: the learning rate grows with it.
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate * hvd.size())
    found = checkpoints.newest(settings.checkpoint_dir, SUFFIX) if hvd.rank() == 0 else None
    if found:
        print(f"resuming after epoch {found[0]} from {found[1]}", flush=True)
        state = torch.load(found[1], weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    # 3. All ranks start from the state of rank 0.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    # 4. Average the gradients of all ranks at every step.
    averaging = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    return hvd.broadcast_object(found[0] if found else 0), averaging


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: digits.Examples,
    settings: argparse.Namespace,
    epoch: int,
    device: torch.device,
) -> float:
    """Train on this rank's share of the images; returns the mean loss of all ranks."""
    model.train()
    total = 0.0
    # 5. This rank's share: every rank has the same number of batches.
    batches = digits.batches(
        len(data), rank=hvd.rank(), size=hvd.size(), batch_size=settings.batch_size, seed=settings.seed, epoch=epoch
    )
    for chosen in batches:
        optimizer.zero_grad()
        loss = loss_of(model, data[chosen], device)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return float(hvd.allreduce(torch.tensor(total / len(batches)), name="loss"))


def check_agreement(model: nn.Module) -> None:
    """7. End with an error unless every rank holds the same weights, bit for bit."""
    checksums = hvd.allgather_object(checksum(model))
    if len(set(checksums)) > 1:
        sys.exit(f"the weights differ between the {hvd.size()} ranks: not every gradient was averaged")
    if hvd.rank() == 0:
        print(f"weights agree on all {hvd.size()} ranks", flush=True)


def main(argv: list[str]) -> None:
    settings = arguments(argv)
    device = join_world()
    torch.manual_seed(settings.seed)
    data, test = digits.load(settings.train)
    model = new_model().to(device)
    done, optimizer = start(settings, model)
    if hvd.rank() == 0:
        print(f"training on {len(data)} images with {hvd.size()} ranks", flush=True)
    for epoch in range(done, settings.epochs):
        loss = train_epoch(model, optimizer, data, settings, epoch, device)
        # 6. Only rank 0 reports and writes files: the others hold the same model.
        if hvd.rank() == 0:
            path = checkpoints.path_of(settings.checkpoint_dir, epoch + 1, SUFFIX)
            save(path, model=model.state_dict(), optimizer=optimizer.state_dict())
            print(f"epoch {epoch + 1}/{settings.epochs} loss {loss:.4f}", flush=True)
    check_agreement(model)
    if hvd.rank() == 0:
        print(f"test_accuracy: {accuracy(model, test, device):.4f}", flush=True)
        save(settings.model_dir / "model.pt", model=model.state_dict())


if __name__ == "__main__":
    main(sys.argv[1:])
