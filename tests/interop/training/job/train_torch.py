"""Trains a small model with DDP in the way that is named."""

from __future__ import annotations

import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
RANK = dist.get_rank()
SECONDS = 30.0  # in which a rank is named, on a busy machine too


def train(work: float, seconds: float, most: int) -> None:
    """So many seconds of work before each step."""
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    began = time.monotonic()
    for _ in range(most):
        goes_on = torch.tensor([time.monotonic() - began < seconds], dtype=torch.int32)
        dist.all_reduce(goes_on, op=dist.ReduceOp.MIN)
        if not goes_on.item():
            return
        time.sleep(work)
        optimizer.zero_grad()
        model(torch.ones(8, 4)).sum().backward()
        optimizer.step()


def few() -> None:
    train(0.0, 60.0, 12)


def slow() -> None:
    train(0.3 if RANK == 2 else 0.15, SECONDS, 1 << 20)


def until_stopped() -> None:
    train(0.05, 3600.0, 1 << 20)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    dist.monitored_barrier()
    dist.destroy_process_group()
