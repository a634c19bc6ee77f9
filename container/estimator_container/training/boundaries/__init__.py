"""What of frameworks is hooked to see where waiting for input, communicating and checkpointing begin and end.

    in_torch.py        PyTorch: its DataLoader, `torch.save`
    in_tensorflow.py   TensorFlow: iterators of `tf.data`, checkpoints; gradients that Horovod reduces in a graph
    in_keras.py        Keras: models and weights that are saved; the epochs of `fit`
    timed.py           a function whose time counts as spent on something

Outside of such a trial each hook calls what it hooks and returns what that returns; it only reads a clock before that
and after it.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from ...runtime.after_import import after_import

if TYPE_CHECKING:
    from ..step_account import StepAccount

_MODULES = {
    "torch.utils.data.dataloader": ("in_torch", "watch_loaders"),
    "torch.serialization": ("in_torch", "watch_saving"),
    "keras.src.saving.saving_api": ("in_keras", "watch_saving"),
    "keras.src.backend.tensorflow.trainer": ("in_keras", "watch_epochs"),
    "tensorflow.python.data.ops.iterator_ops": ("in_tensorflow", "watch_iterators"),
    "tensorflow.python.data.ops.dataset_ops": ("in_tensorflow", "watch_datasets"),
    "tensorflow.python.checkpoint.checkpoint": ("in_tensorflow", "watch_saving"),
    "estimator_container.horovod_keras3.reduction": ("in_tensorflow", "watch_reduction"),
}
"""What is hooked once a script has imported it, and the function here that does it."""


def install(account: StepAccount) -> None:
    """Have the account hear of all of these."""
    for name, (home, function) in _MODULES.items():
        _hook(account, name, home, function)


def _hook(account: StepAccount, name: str, home: str, function: str) -> None:
    def hook(module: ModuleType) -> None:
        from importlib import import_module

        try:
            getattr(import_module(f"{__name__}.{home}"), function)(module, account)
        except AttributeError:  # another version, which has no such thing: nothing is known of it
            return

    after_import(name, hook)
