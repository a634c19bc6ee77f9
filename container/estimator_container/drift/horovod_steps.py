"""What is hooked in Horovod: joining, waiting, and variables that are registered as local."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..training.boundaries.timed import timed
from ..training.page import COMMUNICATION
from .horovod_world import OWN
from .training import Guard


def watch_joining(mpi_ops: ModuleType, guard: Guard) -> None:
    """`join` lets some ranks do more steps than others, and returns when all are done."""
    mpi_ops.join = guard.restarting(mpi_ops.join)  # type: ignore[attr-defined]


def watch_waiting(optimizer: ModuleType, guard: Guard) -> None:
    """On PyTorch a rank waits for the gradients of the others before its optimizer makes a step.

    Of a GPU nothing is told: it goes on with its work when the calls that began it have long returned, so the waiting
    would be taken for the work of whatever asks for a result.
    """
    clock = guard.clock
    if clock is None:
        return
    stock = optimizer._DistributedOptimizer.synchronize
    waits = timed(stock, clock.account, COMMUNICATION)

    @functools.wraps(stock)
    def synchronize(self: Any) -> Any:
        if self.param_groups[0]["params"][0].is_cuda:
            return stock(self)
        clock.work_ends()
        result = waits(self)
        clock.work_begins()
        return result

    optimizer._DistributedOptimizer.synchronize = synchronize


def watch_tapes(hvd: ModuleType, guard: Guard) -> None:
    """Of a tape, variables may be registered as local."""
    _mark_what_is_given(hvd._DistributedGradientTape, "register_local_source")


def watch_keras(implementation: ModuleType, guard: Guard) -> None:
    """So they may of an optimizer; each has a class of its own.

    On Keras 2 an optimizer averages before anything that is hooked, so it is only known that there is one.
    """
    stock = implementation.create_distributed_optimizer

    @functools.wraps(stock)
    def create_distributed_optimizer(keras: Any, *args: Any, **kwargs: Any) -> Any:
        optimizer = stock(keras, *args, **kwargs)
        if str(getattr(keras, "__version__", "2")).startswith("2"):
            guard.averages_unseen = True
        if hasattr(optimizer, "register_local_var"):
            _mark_what_is_given(type(optimizer), "register_local_var")
        return optimizer

    implementation.create_distributed_optimizer = create_distributed_optimizer  # type: ignore[attr-defined]


def _mark_what_is_given(cls: type[Any], name: str) -> None:
    stock: Callable[..., Any] = getattr(cls, name)

    @functools.wraps(stock)
    def register(self: Any, variable: Any) -> Any:
        setattr(getattr(variable, "_value", variable), OWN, True)
        return stock(self, variable)

    setattr(cls, name, register)
