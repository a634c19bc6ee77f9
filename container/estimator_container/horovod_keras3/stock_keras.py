"""What takes the place of names in `horovod._keras`, `horovod.keras` and `horovod.tensorflow.keras`."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from types import ModuleType
from typing import Any

import keras

from . import callbacks
from .loading import loading_wrapped
from .optimizer import distributed_copy
from .reduction import ReductionSettings, plain


def adapt(module: ModuleType) -> None:
    """Adapt `horovod._keras`, or one of the modules that stand on it."""
    if module.__name__ == "horovod._keras":
        module.create_distributed_optimizer = _create(module.create_distributed_optimizer)  # type: ignore[attr-defined]
        module.load_model = loading_wrapped(module.load_model)  # type: ignore[attr-defined]
        return
    from horovod._keras import callbacks as implementations

    for ours in (
        callbacks.Broadcast,
        callbacks.MetricAverage,
        callbacks.LearningRateSchedule,
        callbacks.LearningRateWarmup,
    ):
        _give_methods(ours, getattr(implementations, f"{ours.stock_name}Impl"))
    broadcast = module.callbacks.BroadcastGlobalVariablesCallback
    broadcast.__init__ = _with_plain_variables(broadcast.__init__)
    checkpoint = module.callbacks.BestModelCheckpoint
    checkpoint.__init__ = callbacks.init_without_path(checkpoint.__init__)
    checkpoint.on_train_begin = callbacks.needs_path


def _give_methods(source: type[Any], target: type[Any]) -> None:
    for name, member in vars(source).items():
        if isinstance(member, types.FunctionType):
            setattr(target, name, member)


def _create(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Every `DistributedOptimizer` and `PartialDistributedOptimizer` comes from this one function."""
    of_keras_3 = keras.optimizers.Optimizer

    @functools.wraps(stock)
    def create_distributed_optimizer(keras: Any, optimizer: Any, name: str | None, **settings: Any) -> Any:
        if not isinstance(optimizer, of_keras_3):
            return stock(keras=keras, optimizer=optimizer, name=name, **settings)
        return distributed_copy(
            optimizer, ReductionSettings(name=name or f"Distributed{type(optimizer).__name__}", **settings)
        )

    return create_distributed_optimizer


def _with_plain_variables(init: Callable[..., None]) -> Callable[..., None]:
    """Local variables may be variables of Keras."""

    @functools.wraps(init)
    def init_with_plain(self: Any, root_rank: int, device: str = "", local_variables: Any = None) -> None:
        if isinstance(local_variables, keras.Variable):
            local_variables = [local_variables]
        if isinstance(local_variables, (list, tuple)):
            local_variables = [plain(variable) for variable in local_variables]
        init(self, root_rank, device, local_variables)

    return init_with_plain
