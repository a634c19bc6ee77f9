"""What Keras 3 gets back of Keras 2, because Horovod and the scripts that its documentation shows stand on it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras.src.optimizers.base_optimizer import BaseOptimizer
from keras.src.trainers.trainer import Trainer

from .optimizer import CallableList, Distributed, build_first


@functools.lru_cache(maxsize=None)
def adapt() -> None:
    """Adapt Keras, once."""
    keras.Variable.ref = _ref
    for cls in (BaseOptimizer, keras.optimizers.LossScaleOptimizer):
        cls.variables = property(_callable(cls.variables.fget))
    keras.optimizers.LossScaleOptimizer.apply = _scaled_apply(keras.optimizers.LossScaleOptimizer.apply)
    Trainer.compile = _compile(Trainer.compile)
    Trainer._resolve_auto_jit_compile = _automatic_jit(Trainer._resolve_auto_jit_compile)


def _ref(variable: Any) -> Any:
    """As variables of TensorFlow have it: something that can be looked up in sets."""
    return variable._value.ref()


def _callable(variables: Callable[[Any], list[Any]]) -> Callable[[Any], CallableList]:
    return lambda optimizer: CallableList(variables(optimizer))


def _scaled_apply(apply: Callable[..., None]) -> Callable[..., None]:
    """Reduce before a loss is unscaled: all ranks must see alike whether a gradient is finite, or one would wait."""

    @functools.wraps(apply)
    def apply_scaled(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        inner = self.inner_optimizer
        if not isinstance(inner, Distributed):
            apply(self, grads, trainable_variables)
            return

        def unscale_and_apply(gradients: Any) -> None:
            with inner.taking_gradients_as_they_are():
                apply(self, gradients, trainable_variables)

        if isinstance(self, Distributed):  # it has reduced them
            unscale_and_apply(grads)
            return
        variables = list(trainable_variables or self._trainable_variables)
        build_first(self, variables)
        inner.apply_after_reducing(list(grads), variables, unscale_and_apply)

    return apply_scaled


def _compile(compile: Callable[..., None]) -> Callable[..., None]:
    """Horovod's documentation has every script pass `experimental_run_tf_function=False`; Keras has ignored it since
    TensorFlow 2.2, and Keras 3 does not know it."""

    @functools.wraps(compile)
    def compile_without(self: Any, *args: Any, experimental_run_tf_function: object = None, **kwargs: Any) -> None:
        compile(self, *args, **kwargs)

    return compile_without


def _automatic_jit(resolve: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Where a script leaves it open whether XLA compiles its steps, it cannot with Horovod's operations in them."""

    @functools.wraps(resolve)
    def resolved(self: Any) -> bool:
        optimizer = getattr(self, "optimizer", None)
        if any(isinstance(each, Distributed) for each in (optimizer, getattr(optimizer, "inner_optimizer", None))):
            return False
        return resolve(self)

    return resolved
