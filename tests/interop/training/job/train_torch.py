"""Trains a small model with DDP in the way that is named."""

from __future__ import annotations

import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
RANK = dist.get_rank()
SECONDS = 30.0  # in which a rank is named, on a busy machine too


def train(work: float, seconds: float) -> int:
    """So many seconds of work before each step; returns how many there were."""
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    began, done = time.monotonic(), 0
    while True:
        goes_on = torch.tensor([time.monotonic() - began < seconds], dtype=torch.int32)
        dist.all_reduce(goes_on, op=dist.ReduceOp.MIN)
        if not goes_on.item():
            return done
        time.sleep(work)
        optimizer.zero_grad()
        model(torch.ones(8, 4)).sum().backward()
        optimizer.step()
        done += 1


def slow() -> None:
    print(train(0.3 if RANK == 2 else 0.15, SECONDS), flush=True)


def until_stopped() -> None:
    train(0.05, 3600.0)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    dist.monitored_barrier()
    dist.destroy_process_group()
