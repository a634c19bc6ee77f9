"""An optimizer of Keras 3 that reduces its gradients over the ranks before it applies them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from .passes import Passes
from .reduction import Gradient, Gradients, Reduction, ReductionSettings, reference

# AutoGraph would spend seconds of a first trace on translating what has no tensor to decide about.
_as_it_is = tf.autograph.experimental.do_not_convert


class CallableList(list[Any]):
    """Variables that are a property, as in Keras 3, and can be asked for by a call, as in Keras 2."""

    def __call__(self) -> CallableList:
        return self


def build_first(optimizer: Any, variables: list[Any]) -> None:
    """Build an optimizer before its first step, for no variables can be made where a step may or may not be."""
    if not optimizer.built:
        with tf.init_scope(), keras.name_scope(optimizer.name, caller=optimizer):
            optimizer.build(variables)
        optimizer.built = True


class Distributed:
    """What is put in front of an optimizer's own class."""

    _horovod_settings: ReductionSettings
    _horovod_original: type[Any]
    built: bool

    @_as_it_is  # type: ignore[untyped-decorator]
    def apply(self, grads: Sequence[Gradient | None], trainable_variables: Sequence[Any] | None = None) -> None:
        """Reduce the gradients over the ranks, then apply them as the optimizer itself would."""
        grads = list(grads)
        variables = self._variables_of(grads, trainable_variables)
        self.apply_after_reducing(
            grads,
            variables,
            lambda gradients: super(Distributed, self).apply(gradients, trainable_variables),  # type: ignore[misc]
        )

    @_as_it_is  # type: ignore[untyped-decorator]
    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Gradient | None, Any]],
        name: str | None = None,
        *,
        skip_gradients_aggregation: bool = False,
        experimental_aggregate_gradients: bool = True,
    ) -> Any:
        """As Keras has it. The last two are of Keras 2: with them, gradients are taken for reduced ones."""
        pairs = list(grads_and_vars)
        if skip_gradients_aggregation or not experimental_aggregate_gradients:
            with self.taking_gradients_as_they_are():
                return super().apply_gradients(pairs)  # type: ignore[misc]
        return super().apply_gradients(pairs)  # type: ignore[misc]

    def apply_after_reducing(
        self,
        gradients: Gradients,
        variables: list[Any] | None,
        apply: Callable[[Gradients], object],
    ) -> None:
        """Reduce, then call `apply`, as often as the arguments of `DistributedOptimizer` say."""
        passes = self._agg_helper
        takes_as_they_are = self.__dict__.get("_horovod_takes_as_they_are", False)
        if variables is None or all(gradient is None for gradient in gradients):
            apply(gradients)  # Keras has its own words for these
        elif passes is None:
            apply(gradients if takes_as_they_are else self._horovod.reduced(gradients, variables))
        else:
            build_first(self, variables)
            if not self._are_of_compute_gradients(gradients) and not takes_as_they_are:
                gradients = passes.add(gradients, variables)
            counts: Any = getattr(self, "inner_optimizer", self)
            passes.apply(lambda: apply(gradients), counts._iterations)

    @contextlib.contextmanager
    def taking_gradients_as_they_are(self) -> Iterator[None]:
        """Within it, `apply` reduces nothing."""
        before = self.__dict__.get("_horovod_takes_as_they_are", False)
        object.__setattr__(self, "_horovod_takes_as_they_are", True)
        try:
            yield
        finally:
            object.__setattr__(self, "_horovod_takes_as_they_are", before)

    def register_local_var(self, var: Any) -> None:
        """Leave the gradient of this variable to each rank."""
        self._horovod.local.add(reference(var))

    def compute_gradients(self, loss: Any, var_list: Any, tape: tf.GradientTape | None = None) -> list[tuple[Any, Any]]:
        """Reduced gradients of `loss`, a function or, with its tape, a tensor; beside their variables."""
        if not callable(loss) and tape is None:
            raise ValueError("compute_gradients needs the tape of a loss that is a tensor: pass tape=, or a function.")
        tape = tape or tf.GradientTape()
        if callable(loss):
            with tape:
                loss = loss()
        variables = list(var_list() if callable(var_list) else var_list)
        return list(zip(self._allreduce(tape.gradient(loss, variables), variables), variables))

    def _compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Any = None, tape: tf.GradientTape | None = None
    ) -> list[tuple[Any, Any]]:
        return self.compute_gradients(loss, var_list, tape)

    def minimize(self, loss: Any, var_list: Any, tape: tf.GradientTape | None = None) -> Any:
        """One step, as optimizers of Keras 2 have it."""
        return self.apply_gradients(self.compute_gradients(loss, var_list, tape))

    @_as_it_is  # type: ignore[untyped-decorator]
    def _allreduce(self, grads: Sequence[Gradient | None], vars: Sequence[Any]) -> Gradients:
        passes = self._agg_helper
        if passes is None:
            return self._horovod.reduced(grads, vars)
        gradients = passes.add(grads, vars)
        object.__setattr__(self, "_horovod_computed", [id(gradient) for gradient in gradients])
        return gradients

    def _are_of_compute_gradients(self, gradients: Gradients) -> bool:
        computed = self.__dict__.pop("_horovod_computed", None)
        if computed is not None and computed != [id(gradient) for gradient in gradients]:
            raise ValueError(
                "With backward_passes_per_step, what compute_gradients returns is applied as it is: pass it to "
                "apply_gradients unchanged, or clip by the optimizer's own clipnorm, clipvalue or global_clipnorm."
            )
        return computed is not None

    @property
    def variables(self) -> CallableList:
        """The optimizer's variables; it can be called too, as it is to be with Keras 2."""
        return CallableList(super().variables)  # type: ignore[misc]

    @property
    def lr(self) -> Any:
        """The learning rate, by the name that it had in Keras 2."""
        return self.learning_rate

    @lr.setter
    def lr(self, value: Any) -> None:
        self.learning_rate = value

    @property
    def process_set(self) -> Any:
        """The process set over which gradients are averaged."""
        return self._horovod_settings.process_set

    # Cached past Keras, which would track what is assigned.
    @functools.cached_property
    def _horovod(self) -> Reduction:
        return Reduction(self._horovod_settings)

    @functools.cached_property
    def _agg_helper(self) -> Passes | None:
        return Passes(self._horovod) if self._horovod_settings.backward_passes_per_step > 1 else None

    def _variables_of(self, gradients: Gradients, variables: Sequence[Any] | None) -> list[Any] | None:
        if variables is None:
            variables = self._trainable_variables if self.built else None  # type: ignore[attr-defined]
            return variables if variables is not None and len(variables) == len(gradients) else None
        if len(variables) != len(gradients):
            raise ValueError(f"There are {len(gradients)} gradients for {len(variables)} variables: pass one for each.")
        return list(variables)


def distributed_class(optimizer: keras.optimizers.Optimizer, settings: ReductionSettings) -> type[Any]:
    """The class of an optimizer, with `Distributed` in front of it. Raises TypeError for anything but an optimizer."""
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise TypeError(
            f"DistributedOptimizer needs a Keras optimizer object, not {optimizer!r}: "
            "pass for example keras.optimizers.Adam(0.001)."
        )
    original = getattr(type(optimizer), "_horovod_original", type(optimizer))
    # Keras writes the class by its name and module; one that is registered as serializable, by its registered name.
    members = {
        "__module__": original.__module__,
        "_horovod_settings": settings,
        "_horovod_original": original,
    }
    return type(keras.saving.get_registered_name(original), (Distributed, original), members)


def distributed_copy(optimizer: keras.optimizers.Optimizer, settings: ReductionSettings) -> keras.optimizers.Optimizer:
    """A new optimizer of the same settings and state, as Horovod makes one; the given one stays as it is."""
    cls = distributed_class(optimizer, settings)
    config = optimizer.get_config()
    rate = getattr(optimizer, "_learning_rate", None)
    if "learning_rate" in config and callable(rate) and not isinstance(rate, keras.Variable):
        config["learning_rate"] = rate  # a schedule or a function, of whatever class
    copy = cls.from_config(config)
    if optimizer.built:
        copy.build(optimizer._trainable_variables)
        for variable, value in zip(copy.variables, optimizer.variables):
            variable.assign(value)
    return copy
