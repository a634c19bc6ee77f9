"""The drift guard: ranks that ought to have the same weights and do not are found after a few steps.

In each rank it counts the steps of every optimizer, of TensorFlow and of PyTorch, and after steps 2, 5, 20 and
each 500th it sends a few sampled weights to the toolkit of its host. It asks nothing of the other ranks, so
it can neither hold them up nor come between their collective operations. The first host compares what all ranks sent
after the same step. The same hooks tell the clock of the rank (`training`) of each step.

    tensorflow_steps.py, torch_steps.py   how steps are noticed, and weights read
    horovod_steps.py                      the same for joining, and for variables that belong to one rank alone
    horovod_world.py                      which ranks average with each other
    torch_first_calls.py                  keeps PyTorch from computing less exactly on one rank
    training.py                           counting, sampling, sending
    weight_report.py                      what is sent

Who differs, and whether that ends the job, is for the first host to say: `failures/drift.py`.

`docs/horovod.md` says what is found, what is never accused, and how to turn it off.
"""

from __future__ import annotations

import os

from ..contract.names import DRIFT_GUARD
from ..runtime.after_import import after_import
from ..training import boundaries, clock_of_rank
from .training import Guard

_MODULES = {
    "keras.src.optimizers.base_optimizer": ("tensorflow_steps", "watch_keras"),
    "tensorflow.python.eager.backprop": ("tensorflow_steps", "watch_tapes"),
    "tensorflow.python.eager.polymorphic_function.polymorphic_function": ("tensorflow_steps", "watch_functions"),
    "torch.optim": ("torch_first_calls", "call_functions"),
    "torch.optim.optimizer": ("torch_steps", "watch_optimizers"),
    "torch.nn.modules.module": ("torch_steps", "watch_modules"),
    "torch.nn.parallel.distributed": ("torch_steps", "watch_parallel"),
    "torch.distributed.algorithms.join": ("torch_steps", "watch_joining"),
    "horovod.tensorflow.mpi_ops": ("horovod_steps", "watch_joining"),
    "horovod.torch.mpi_ops": ("horovod_steps", "watch_joining"),
    "horovod.torch.optimizer": ("horovod_steps", "watch_waiting"),
    "horovod.tensorflow": ("horovod_steps", "watch_tapes"),
    "horovod._keras": ("horovod_steps", "watch_keras"),
}
"""What is hooked once a script has imported it, and the function here that does it."""
guard: Guard | None = None
"""This rank's, if its weights are compared."""
_is_installed = False


def install(socket_path: str | None) -> None:
    """Guard this rank, whose toolkit listens at `socket_path`, and count its steps; does nothing the second time.

    Where the guard is off, or the rank is alone, its steps are only counted; so are those of a script without a world,
    whose toolkit listens nowhere.
    """
    global guard, _is_installed
    if _is_installed:
        return
    _is_installed = True
    rank, size, compares = 0, 1, False
    mode = os.environ.get(DRIFT_GUARD, "").lower()
    if socket_path is not None:
        rank, size = int(os.environ["RANK"]), int(os.environ.get("WORLD_SIZE", "1"))
        compares = mode != "off" and size > 1
    clock = clock_of_rank()
    if not compares and clock is None:
        return
    if clock is not None:
        boundaries.install(clock.account)
    installed = Guard(socket_path or "", rank, size, mode == "warn", compares, clock)
    guard = installed if compares else None
    for name, (home, function) in _MODULES.items():
        _hook(installed, name, home, function)


def _hook(guard: Guard, name: str, home: str, function: str) -> None:
    def hook(module: object) -> None:
        from importlib import import_module

        getattr(import_module(f"{__name__}.{home}"), function)(module, guard)

    after_import(name, hook)
