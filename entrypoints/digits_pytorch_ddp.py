"""Recognise handwritten digits with PyTorch's DistributedDataParallel, on all ranks of a process group.

    torchrun --nproc-per-node 4 digits_pytorch_ddp.py     # four processes
    python digits_pytorch_ddp.py                          # one, without torchrun

What a process group asks of a training script is marked with numbers, 1 to 7.
"""

from __future__ import annotations

import argparse
import os
import sys

import checkpoints
import digits
import torch
import torch.distributed as dist
from digits_torch import SUFFIX, accuracy, arguments, checksum, loss_of, new_model, save
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}


def join_group() -> torch.device:
    """1. Meet the other ranks, where the environment says."""
    if "RANK" not in os.environ:
        os.environ.update(ALONE)
    if not torch.cuda.is_available():
        dist.init_process_group("gloo")
        return torch.device("cpu")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("nccl")
    return torch.device("cuda")


def start(settings: argparse.Namespace, model: nn.Module) -> tuple[int, torch.optim.Optimizer]:
    """Epochs done, and the optimizer. Every rank reads the checkpoint, which is on every host."""
    # 2. As many ranks as there are, so much larger is the batch: the learning rate grows with it.
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate * dist.get_world_size())
    found = checkpoints.newest(settings.checkpoint_dir, SUFFIX)
    if not found:
        return 0, optimizer
    state = torch.load(found[1], weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    if dist.get_rank() == 0:
        print(f"resuming after epoch {found[0]} from {found[1]}", flush=True)
    return found[0], optimizer


def train_epoch(
    model: DistributedDataParallel,
    optimizer: torch.optim.Optimizer,
    data: digits.Examples,
    settings: argparse.Namespace,
    epoch: int,
    device: torch.device,
) -> float:
    """Train on this rank's share of the images; returns the mean loss of all ranks."""
    model.train()
    total = torch.zeros(1, device=device)
    # 4. This rank's share: every rank has the same number of batches.
    batches = digits.batches(
        len(data),
        rank=dist.get_rank(),
        size=dist.get_world_size(),
        batch_size=settings.batch_size,
        seed=settings.seed,
        epoch=epoch,
    )
    for chosen in batches:
        optimizer.zero_grad()
        loss = loss_of(model, data[chosen], device)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    return float(total) / len(batches) / dist.get_world_size()


def check_agreement(model: nn.Module) -> None:
    """6. End with an error unless every rank holds the same weights, bit for bit."""
    size = dist.get_world_size()
    checksums: list[str] = [""] * size
    dist.all_gather_object(checksums, checksum(model))
    if len(set(checksums)) > 1:
        sys.exit(f"the weights differ between the {size} ranks: not every gradient was averaged")
    if dist.get_rank() == 0:
        print(f"weights agree on all {size} ranks", flush=True)


def leave_group() -> None:
    """7. Wait for rank 0, which has the model to save."""
    if dist.get_backend() == "gloo":
        # Gloo's threads take the interpreter to free what the last collective used. They have it while this waits; if
        # it ended instead, they would abort the process. A plain barrier would itself be the last to free it.
        dist.monitored_barrier()
    dist.destroy_process_group()


def main(argv: list[str]) -> None:
    settings = arguments(argv)
    device = join_group()
    torch.manual_seed(settings.seed)
    data, test = digits.load(settings.train)
    model = new_model().to(device)
    done, optimizer = start(settings, model)
    # 3. All ranks start from the weights of rank 0, and average their gradients at every step.
    together = DistributedDataParallel(model)
    leads = dist.get_rank() == 0
    if leads:
        print(f"training on {len(data)} images with {dist.get_world_size()} ranks", flush=True)
    for epoch in range(done, settings.epochs):
        loss = train_epoch(together, optimizer, data, settings, epoch, device)
        # 5. Only rank 0 reports and writes files: the others hold the same model.
        if leads:
            path = checkpoints.path_of(settings.checkpoint_dir, epoch + 1, SUFFIX)
            save(path, model=model.state_dict(), optimizer=optimizer.state_dict())
            print(f"epoch {epoch + 1}/{settings.epochs} loss {loss:.4f}", flush=True)
    check_agreement(model)
    if leads:
        print(f"test_accuracy: {accuracy(model, test, device):.4f}", flush=True)
        save(settings.model_dir / "model.pt", model=model.state_dict())
    leave_group()


if __name__ == "__main__":
    main(sys.argv[1:])
