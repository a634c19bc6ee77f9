"""What Horovod tells of a job: whether it is for all ranks, who averages with whom, what is a rank's own."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .training import Guard

_OWN = "_is_of_its_rank_alone"


def is_for_all(size: int) -> bool:
    """Whether Horovod has been initialised on all `size` ranks of the world, and they are not split into sets."""
    return any(_size(basics) == size and _process_sets(basics) == 1 for basics in _initialised())


def is_for_some(size: int) -> bool:
    """Whether it has been initialised on fewer ranks than there are: which ones is not known."""
    return any(_size(basics) != size for basics in _initialised())


def ranks_of(process_set: Any) -> tuple[int, ...]:
    """Empty for all."""
    return () if process_set is None or process_set.process_set_id == 0 else tuple(process_set.ranks)


def is_own(variable: Any) -> bool:
    """Whether a variable was registered as local, so that each rank has its own."""
    return hasattr(variable, _OWN)


def _initialised() -> list[Any]:
    modules = (sys.modules.get(f"horovod.{framework}.mpi_ops") for framework in ("tensorflow", "torch"))
    found = (getattr(module, "_basics", None) for module in modules)
    return [basics for basics in found if basics is not None and basics.is_initialized()]


def _size(basics: Any) -> int:
    return int(basics.size())


def _process_sets(basics: Any) -> int:
    """How many there are; the one of all ranks is always there."""
    return len(basics._get_process_set_ids_and_ranks())


# What is hooked.


def watch_joining(mpi_ops: ModuleType, guard: Guard) -> None:
    """`join` lets some ranks do more steps than others, and returns when all are done."""
    stock = mpi_ops.join

    @functools.wraps(stock)
    def join(*args: Any, **kwargs: Any) -> Any:
        result = stock(*args, **kwargs)
        guard.restart()
        return result

    mpi_ops.join = join  # type: ignore[attr-defined]


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
        setattr(getattr(variable, "_value", variable), _OWN, True)
        return stock(self, variable)

    setattr(cls, name, register)
