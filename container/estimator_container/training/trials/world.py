"""What a trial changes between the ranks of a world: the CPUs that each keeps to, how gradients are sent."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from ...runtime.after_import import after_import

HOROVODS = ("horovod.torch.compression", "horovod.tensorflow.compression")


def keep_to_own_cpus() -> None:
    """Leave to this rank, and to all threads that it starts, its part of the CPUs of its host; none if there are too
    few for one each."""
    allowed = sorted(os.sched_getaffinity(0))
    rank, ranks = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    own = allowed[len(allowed) * rank // ranks : len(allowed) * (rank + 1) // ranks]
    if own:
        os.sched_setaffinity(0, own)


def send_half() -> None:
    """Have Horovod send what the script does not compress as numbers of 16 bits, gradients above all."""
    for name in HOROVODS:
        after_import(name, _compress)


def _compress(module: ModuleType) -> None:
    """Before anything takes it for the default of its own argument."""
    compression: Any = module
    compression.Compression.none = compression.Compression.fp16
