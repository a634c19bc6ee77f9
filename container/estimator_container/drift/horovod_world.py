"""What Horovod tells of a job: whether it is for all ranks, who averages with whom, what is a rank's own."""

from __future__ import annotations

import sys
from typing import Any

OWN = "_is_of_its_rank_alone"
"""The attribute of a variable that was registered as local."""


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
    return hasattr(variable, OWN)


def _initialised() -> list[Any]:
    modules = (sys.modules.get(f"horovod.{framework}.mpi_ops") for framework in ("tensorflow", "torch"))
    found = (getattr(module, "_basics", None) for module in modules)
    return [basics for basics in found if basics is not None and basics.is_initialized()]


def _size(basics: Any) -> int:
    return int(basics.size())


def _process_sets(basics: Any) -> int:
    """How many there are; the one of all ranks is always there."""
    return len(basics._get_process_set_ids_and_ranks())
