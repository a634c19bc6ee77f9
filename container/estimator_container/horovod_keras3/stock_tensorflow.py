"""What takes the place of names in `horovod.tensorflow`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import tensorflow as tf

from . import keras_itself
from .batch_normalization import sync_batch_normalization
from .reduction import mark, plain


def adapt(hvd: ModuleType) -> None:
    """Adapt `horovod.tensorflow`, and Keras, on which it stands."""
    keras_itself.adapt()
    _replace(hvd.functions, "broadcast_variables", _broadcast_variables(hvd.functions.broadcast_variables))
    _replace(hvd.sync_batch_norm, "SyncBatchNormalization", sync_batch_normalization(hvd))
    tape = hvd._DistributedGradientTape
    tape.gradient = _gradient(tape.gradient)
    if not hasattr(hvd, "BroadcastGlobalVariablesHook"):
        hvd.BroadcastGlobalVariablesHook = _broadcast_hook(hvd)  # type: ignore[attr-defined]


def _replace(home: ModuleType, name: str, new: object) -> None:
    """In its own module, and in those of Horovod's that have imported it from there."""
    old = getattr(home, name)
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "horovod" and vars(module).get(name) is old:
            setattr(module, name, new)


def _broadcast_variables(broadcast: Callable[..., Any]) -> Callable[..., Any]:
    """Horovod assigns to variables of TensorFlow, and gives them their names."""

    @functools.wraps(broadcast)
    def broadcast_variables(variables: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        return broadcast([plain(variable) for variable in variables], *args, **kwargs)

    return broadcast_variables


def _gradient(gradient: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """A tape's gradients are reduced, and an optimizer that reduces is to leave them so."""

    @functools.wraps(gradient)
    def reduced_gradient(self: Any, target: Any, sources: Sequence[Any], *args: Any, **kwargs: Any) -> list[Any]:
        result = gradient(self, target, [plain(source) for source in sources], *args, **kwargs)
        mark(result)
        return result

    return reduced_gradient


def _broadcast_hook(hvd: ModuleType) -> type[Any]:
    """Horovod looks for the base of its hook where TensorFlow had it until 2.15."""

    class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        """Have all ranks start a session of TensorFlow 1 with the variables of one of them."""

        def __init__(self, root_rank: int, device: str = "") -> None:
            super().__init__()
            self.root_rank = root_rank
            self.device = device
            self.bcast_op: Any = None

        def begin(self) -> None:
            if self.bcast_op is None or self.bcast_op.graph != tf.compat.v1.get_default_graph():
                with tf.device(self.device):
                    self.bcast_op = hvd.broadcast_global_variables(self.root_rank)

        def after_create_session(self, session: Any, coord: Any) -> None:
            session.run(self.bcast_op)

    return BroadcastGlobalVariablesHook
