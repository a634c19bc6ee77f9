"""What takes the place of names in `horovod.tensorflow`."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, cast

import tensorflow as tf

from . import keras_itself
from .batch_normalization import sync_batch_normalization
from .operations import Names, broadcast
from .reduction import Reduction, ReductionSettings, mark, plain

_TAPE = "DistributedGradientTape"  # the name that Horovod gives to the reduction of its tapes
_TAPES = (_TAPE, "PartialDistributedGradientTape")
_names_of_tapes = Names(_TAPE)


def adapt(hvd: ModuleType) -> None:
    """Adapt `horovod.tensorflow`, and Keras, on which it stands."""
    keras_itself.adapt()
    _replace(hvd.functions, "broadcast_variables", _broadcast_variables(hvd.functions.broadcast_variables))
    _replace(hvd.sync_batch_norm, "SyncBatchNormalization", sync_batch_normalization(hvd))
    hvd._make_allreduce_grads_fn = _make_allreduce_grads_fn(hvd._make_allreduce_grads_fn)  # type: ignore[attr-defined]
    tape = hvd._DistributedGradientTape
    # AutoGraph would spend seconds of a first trace on translating what has no tensor to decide about.
    tape.gradient = tf.autograph.experimental.do_not_convert(_gradient(tape.gradient))
    for name in _TAPES:
        _replace(hvd, name, tf.autograph.experimental.do_not_convert(getattr(hvd, name)))
    if not hasattr(hvd, "BroadcastGlobalVariablesHook"):
        hvd.BroadcastGlobalVariablesHook = _broadcast_hook(hvd)  # type: ignore[attr-defined]


def _replace(home: ModuleType, name: str, new: object) -> None:
    """In its own module, and in those of Horovod's that have imported it from there."""
    old = getattr(home, name)
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "horovod" and vars(module).get(name) is old:
            setattr(module, name, new)


def _broadcast_variables(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Horovod assigns to variables of TensorFlow, and gives the operations their names."""

    @functools.wraps(stock)
    def broadcast_variables(
        variables: Iterable[Any], root_rank: int, process_set: Any = None, inplace: bool = False
    ) -> Any:
        own = [plain(variable) for variable in variables]
        given = {} if process_set is None else {"process_set": process_set}
        if not (tf.executing_eagerly() or tf.inside_function()):
            return stock(own, root_rank, inplace=inplace, **given)
        broadcast(own, root_rank, **given)  # Horovod's way in place knows its operation by the names of variables
        return None

    return broadcast_variables


def _make_allreduce_grads_fn(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Tapes reduce as optimizers do; what is left to Horovod is its optimizers of TensorFlow 1."""

    signature = inspect.signature(stock)

    @functools.wraps(stock)
    def make_allreduce_grads_fn(name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        if name != _TAPE or not (tf.executing_eagerly() or tf.inside_function()):
            return cast(Callable[..., Any], stock(name, *args, **kwargs))
        settings = ReductionSettings(**signature.bind(name, *args, **kwargs).arguments)
        reduction = Reduction(settings, _names_of_tapes)
        return lambda grads, vars, use_generic_names=False: reduction.reduced(grads, vars)

    return make_allreduce_grads_fn


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
