"""Trains a small model with PyTorch and Horovod, slow in the way that is named: `slow_torch.py WAY SHARE`."""

from __future__ import annotations

import os
import sys

import horovod.torch as hvd
import torch
import truth

hvd.init()
WAY, SHARE = sys.argv[1], float(sys.argv[2])
STEPS, STEP = 150, 0.1
EXTRA = SHARE * STEP
CHECKPOINT_STEPS = 10


class Batches(torch.utils.data.Dataset):
    """Takes long to be decoded."""

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, number: int) -> torch.Tensor:
        if WAY == "input" or (WAY == "slow rank" and hvd.rank() == 1):
            truth.sleep("input", EXTRA)
        return torch.ones(4)


class Slow:
    """Takes long to be saved."""

    def __getstate__(self) -> dict[str, int]:
        truth.sleep("checkpoint", CHECKPOINT_STEPS * EXTRA)
        return {"a": 1}


torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.001), model.named_parameters())
for number, batch in enumerate(torch.utils.data.DataLoader(Batches(), batch_size=1)):
    truth.spin(STEP - EXTRA)
    if WAY == "idle":
        truth.sleep("idle", EXTRA)
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
    if number == 0:
        truth.first_step_ended()
    if number % CHECKPOINT_STEPS == 5 and hvd.rank() == 0 and WAY == "checkpoint":
        torch.save(Slow(), f"{os.environ['SM_CHECKPOINT_DIR']}/{number}.pt")
truth.tell()
