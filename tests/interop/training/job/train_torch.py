"""Trains a small model with DDP in the way that is named."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
RANK = dist.get_rank()
ENOUGH = Path(os.environ["SM_OUTPUT_DATA_DIR"], "enough")
"""A file that ends the training."""


def train(work: float) -> int:
    """So many seconds of work before each step, until it is enough; returns how many steps there were."""
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    done = 0
    while True:
        goes_on = torch.tensor([not ENOUGH.exists()], dtype=torch.int32)
        dist.all_reduce(goes_on, op=dist.ReduceOp.MIN)
        if not goes_on.item():
            return done
        time.sleep(work)
        optimizer.zero_grad()
        model(torch.ones(8, 4)).sum().backward()
        optimizer.step()
        done += 1


def slow() -> None:
    print(train(0.3 if RANK == 2 else 0.15), flush=True)


def until_stopped() -> None:
    train(0.05)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    dist.monitored_barrier()
    dist.destroy_process_group()
