"""What takes the place of names in `horovod._keras`, `horovod.keras` and `horovod.tensorflow.keras`."""

from __future__ import annotations

import functools
import json
import types
import zipfile
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import keras
from keras.src.optimizers import ALL_OBJECTS, Optimizer

from . import callbacks
from .optimizer import Distributed, distributed_copy
from .reduction import Settings, plain


def adapt(module: ModuleType) -> None:
    """Adapt `horovod._keras`, or one of the modules that stand on it."""
    if module.__name__ == "horovod._keras":
        module.create_distributed_optimizer = _create(module.create_distributed_optimizer)  # type: ignore[attr-defined]
        module.load_model = _load_model(module.load_model)  # type: ignore[attr-defined]
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

    @functools.wraps(stock)
    def create_distributed_optimizer(keras: Any, optimizer: Any, name: str | None, **settings: Any) -> Any:
        if not isinstance(optimizer, Optimizer):
            return stock(keras=keras, optimizer=optimizer, name=name, **settings)
        return distributed_copy(optimizer, Settings(name=name or f"Distributed{type(optimizer).__name__}", **settings))

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


def _load_model(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Load what was saved, then have its optimizer average: so it keeps its state."""

    @functools.wraps(stock)
    def load_model(
        keras: Any,
        wrap_optimizer: Callable[[Callable[[], Any]], Callable[[], Any]],
        filepath: Any,
        custom_optimizers: Iterable[type[Any]] | None,
        custom_objects: Mapping[str, Any] | None,
        legacy_opts: bool = False,
    ) -> Any:
        # A file that was saved with Horovod's own class names it by a module that has no such class.
        objects: dict[str, Any] = {cls.__name__: cls for cls in [*ALL_OBJECTS, *(custom_optimizers or ())]}
        objects.update(custom_objects or {})
        name = _name_of_saved_optimizer(filepath)
        if isinstance(objects.get(name), types.FunctionType):
            objects[name] = _Factory(objects[name])
        model = keras.models.load_model(filepath, custom_objects=objects)
        optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        if optimizer is not None and not isinstance(optimizer, Distributed):
            wrapped = wrap_optimizer(lambda: optimizer)()
            object.__setattr__(optimizer, "__class__", type(wrapped))  # past Keras, which would track it
        if model.jit_compile:
            model.jit_compile = False
        return model

    return load_model


class _Factory:
    """A function in the place of an optimizer's class, as in `{"SGD": lambda **c: hvd.DistributedOptimizer(SGD(**c))}`."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def from_config(self, config: dict[str, Any], custom_objects: Any = None) -> Any:
        return Optimizer.from_config.__func__(self._make, config, custom_objects)


def _name_of_saved_optimizer(filepath: Any) -> str:
    """The name of its class; empty where the file is of a form that Keras itself is to refuse."""
    if zipfile.is_zipfile(filepath):
        with zipfile.ZipFile(filepath) as file:
            optimizer = (json.loads(file.read("config.json")).get("compile_config") or {}).get("optimizer")
    else:
        optimizer = _optimizer_in_hdf5(filepath)
    return str((optimizer or {}).get("registered_name") or (optimizer or {}).get("class_name") or "")


def _optimizer_in_hdf5(filepath: Any) -> dict[str, Any] | None:
    import h5py

    if isinstance(filepath, h5py.File):
        found: dict[str, Any] = json.loads(filepath.attrs.get("training_config", "{}")).get("optimizer_config")
        return found
    if not h5py.is_hdf5(filepath):
        return None
    with h5py.File(filepath, "r") as file:
        return _optimizer_in_hdf5(file)
