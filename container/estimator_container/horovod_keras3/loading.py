"""Horovod's `load_model`: a model whose optimizer averages again, and goes on from its state."""

from __future__ import annotations

import functools
import json
import types
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import h5py
from keras.src.legacy.saving.legacy_h5_format import load_optimizer_weights_from_hdf5_group
from keras.src.optimizers import ALL_OBJECTS, Optimizer

from .optimizer import Distributed


def loading_wrapped(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Takes the place of `horovod._keras.load_model`: wraps the optimizer that Keras has loaded."""

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
        if not zipfile.is_zipfile(filepath):
            _build_anew(model, filepath)
        if optimizer is not None and not isinstance(optimizer, Distributed):
            wrapped = wrap_optimizer(lambda: optimizer)()
            object.__setattr__(optimizer, "__class__", type(wrapped))  # past Keras, which would track it
        if model.jit_compile:
            model.jit_compile = False
        return model

    return load_model


class _Factory:
    """A function in the place of an optimizer's class: `{"Own": lambda **c: hvd.DistributedOptimizer(Own(**c))}`."""

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
    if isinstance(filepath, h5py.File):
        found: dict[str, Any] = json.loads(filepath.attrs.get("training_config", "{}")).get("optimizer_config")
        return found
    if not h5py.is_hdf5(filepath):
        return None
    with h5py.File(filepath, "r") as file:
        return _optimizer_in_hdf5(file)


def _build_anew(model: Any, filepath: Any) -> None:
    """Keras 3 builds the optimizer of an HDF5 file for no variables: it could not train, and its state is lost."""
    optimizer = model.optimizer
    if optimizer is None or optimizer._trainable_variables or not optimizer.built:
        return
    optimizer.built = False
    optimizer.build(model.trainable_variables)
    file = filepath if isinstance(filepath, h5py.File) else h5py.File(filepath, "r")
    try:
        optimizer.set_weights(load_optimizer_weights_from_hdf5_group(file))
    finally:
        if file is not filepath:
            file.close()
