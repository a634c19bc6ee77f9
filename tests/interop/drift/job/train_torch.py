"""Trains in several ways on PyTorch, on all ranks; the words of the command line choose which, in their order."""

from __future__ import annotations

import os
import sys

import torch
from torch.nn.parallel import DistributedDataParallel

STEPS = 12
RANK = int(os.environ["RANK"])


class Net(torch.nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(4, width)
        self.out = torch.nn.Linear(width, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.hidden(inputs)))


def net(width: int = 8) -> Net:
    """The same weights on every rank."""
    torch.manual_seed(0)
    return Net(width)


def train(model, optimizer, steps: int = STEPS, sync=None) -> None:
    generator = torch.Generator().manual_seed(RANK)
    for _ in range(steps):
        inputs = torch.randn(4, 4, generator=generator)
        optimizer.zero_grad()
        with sync() if sync else torch.enable_grad():
            (model(inputs) - inputs.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()


def sgd(model) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), 0.1)


# Of process groups.


def alone() -> None:
    """Found; but nothing asks for the averaging."""
    model = net()
    train(model, sgd(model))


def other_widths() -> None:
    model = net(8 + RANK)
    train(model, sgd(model))


def parallel() -> None:
    model = DistributedDataParallel(net())
    train(model, sgd(model))


def in_two_groups() -> None:
    """Each with a model of its own."""
    groups = [torch.distributed.new_group([0, 2]), torch.distributed.new_group([1, 3])]
    model = DistributedDataParallel(net(16), process_group=groups[RANK % 2])
    train(model, sgd(model))


def uneven_inputs() -> None:
    """Some ranks do more steps than others, all meet, and then all do the same number."""
    model = DistributedDataParallel(net())
    optimizer = sgd(model)
    with model.join():
        train(model, optimizer, steps=1 + RANK)
    train(model, optimizer)


def without_synchronizing() -> None:
    """Found: the gradients that are applied are a rank's own."""
    model = DistributedDataParallel(net())
    train(model, sgd(model), steps=100 * STEPS, sync=model.no_sync)


# Of Horovod.


def horovod_averaged() -> None:
    model = net()
    train(model, hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters()))


def horovod_alone() -> None:
    """Found."""
    model = net()
    train(model, sgd(model))


if __name__ == "__main__":
    torch.set_num_threads(1)
    if any(name.startswith("horovod") for name in sys.argv[1:]):
        import horovod.torch as hvd

        hvd.init()
    else:
        torch.distributed.init_process_group("gloo")
    for name in sys.argv[1:]:
        globals()[name]()
    print("done", flush=True)
