"""How steps are noticed on TensorFlow, and weights read: of optimizers of Keras 3, and of loops that use a tape alone.

Where a step is a `tf.function`, Python sees it only as it is traced. What is noticed then is remembered with the
outermost function, and counted as often as that is called.
"""

from __future__ import annotations

import functools
import math
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from . import horovod_world
from .training import Guard, Training, Weight, places
from .weight_report import PRECISIONS

_OF_FUNCTION = "_drift_trainings"
_LIBRARIES = ("horovod", "estimator_container")
_optimizers: weakref.WeakKeyDictionary[Any, _Trained] = weakref.WeakKeyDictionary()
_tapes: dict[tuple[object, ...], _Trained] = {}


class _Trained:
    """A training with the variables that it changes."""

    def __init__(self, guard: Guard, variables: Iterable[Any], is_own: Callable[[Any], bool]) -> None:
        """`is_own` tells what is this rank's own, at the first report."""
        self._is_own = is_own
        self.variables = [weakref.ref(variable) for variable in variables]
        self.keys = {id(_plain(variable)) for variable in variables}
        self.training = guard.begin(self._weights)

    def is_alive(self) -> bool:
        return all(variable() is not None for variable in self.variables[:1])

    def _weights(self) -> list[Weight]:
        there = [variable for variable in (reference() for reference in self.variables) if variable is not None]
        return [_weight(variable) for variable in there if not self._is_own(_plain(variable))]


def watch_keras(base_optimizer: ModuleType, guard: Guard) -> None:
    """Notice every step of an optimizer of Keras 3 that runs on TensorFlow."""
    if base_optimizer.backend.backend() != "tensorflow":
        return
    stock = base_optimizer.BaseOptimizer.apply

    @functools.wraps(stock)
    def apply(self: Any, grads: Sequence[Any], trainable_variables: Any = None) -> None:
        stock(self, grads, trainable_variables)
        guard.safely(lambda: _happened(_trained_by(self, guard).training))

    base_optimizer.BaseOptimizer.apply = apply


def watch_tapes(backprop: ModuleType, guard: Guard) -> None:
    """Notice where gradients are taken, of which no optimizer may ever hear."""
    stock = backprop.GradientTape.gradient

    @functools.wraps(stock)
    def gradient(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        result = stock(self, target, sources, *args, **kwargs)
        guard.safely(lambda: _gradients_taken(self, sources, guard))
        return result

    backprop.GradientTape.gradient = gradient


def watch_functions(polymorphic_function: ModuleType, guard: Guard) -> None:
    """Count the calls of functions in which something is trained, and in which a rank may wait for others."""
    stock = polymorphic_function.Function._call
    is_eager = polymorphic_function.context.executing_eagerly  # TensorFlow's public name for it takes longer

    def _call(self: Any, *args: Any, **kwds: Any) -> Any:
        clock = guard.clock
        if clock is not None and (_OF_FUNCTION not in self.__dict__ or not is_eager() or _has_gpus()):
            clock = None
        if clock is not None:
            clock.work_ends()
        result = stock(self, *args, **kwds)
        if clock is not None:
            clock.work_begins()
        trainings = self.__dict__.get(_OF_FUNCTION)
        if trainings is not None:
            called_alone = is_eager()
            for training in trainings:
                if called_alone:
                    training.count()
                else:
                    _is_traced(training, sys._getframe())
        return result

    global _calls
    _calls = _call.__code__
    polymorphic_function.Function._call = _call


_calls: object = None
"""The code in whose frames a function is called."""


class _OfFunction(list):  # type: ignore[type-arg]
    """The trainings of one function; a copy of the function traces anew."""

    def __deepcopy__(self, memo: object) -> _OfFunction:
        return _OfFunction()

    def __reduce__(self) -> tuple[Any, ...]:
        return _OfFunction, ()


@functools.lru_cache(maxsize=None)
def _has_gpus() -> bool:
    """There a function returns before its work is done, so nothing is known of when the rank waits for others."""
    return bool(tf.config.list_logical_devices("GPU"))


def _happened(training: Training) -> None:
    """A step is done, or is traced."""
    if tf.executing_eagerly():
        training.count()
    else:
        _is_traced(training, sys._getframe())


def _is_traced(training: Training, frame: FrameType) -> None:
    """Remember with the outermost function that is traced in a frame that its calls are steps."""
    function = _outermost_function(frame)
    if function is not None:
        trainings = function.__dict__.setdefault(_OF_FUNCTION, _OfFunction())
        if training not in trainings:
            trainings.append(training)


def _outermost_function(frame: FrameType | None) -> Any:
    function = None
    while frame is not None:
        if frame.f_code is _calls:
            function = frame.f_locals["self"]
        frame = frame.f_back
    return function


def _trained_by(optimizer: Any, guard: Guard) -> _Trained:
    trained = _optimizers.get(optimizer)
    if trained is None:
        trained = _Trained(guard, optimizer._trainable_variables, functools.partial(_is_own, weakref.ref(optimizer)))
        settings = getattr(optimizer, "_horovod_settings", None)
        if settings is not None:
            trained.training.ranks = horovod_world.ranks_of(settings.process_set)
        _optimizers[optimizer] = trained
        for tape in _tapes.values():
            _replace(tape, trained)
    return trained


def _is_own(optimizer: weakref.ref[Any], variable: Any) -> bool:
    reduction = getattr(optimizer(), "_horovod", None)
    return horovod_world.is_own(variable) or (reduction is not None and variable.ref() in reduction.local)


def _gradients_taken(tape: Any, sources: Any, guard: Guard) -> None:
    variables = tf.nest.flatten(sources)
    if not variables or not _is_trained(variables[0]):
        return
    caller = _caller()
    key = (caller.f_code, caller.f_lineno, id(_plain(variables[0])), len(variables))
    trained = _tapes.get(key)
    if trained is None or not trained.is_alive():
        for gone in [key for key, each in _tapes.items() if not each.is_alive()]:
            del _tapes[gone]
        trained = _tapes[key] = _Trained(guard, list(filter(_is_trained, variables)), horovod_world.is_own)
        if hasattr(tape, "_allreduce_grads"):
            trained.training.ranks = horovod_world.ranks_of(getattr(tape, "process_set", None))
        for optimizer in _optimizers.values():
            _replace(trained, optimizer)
    if trained.training.due:
        _happened(trained.training)


def _replace(tape: _Trained, optimizer: _Trained) -> None:
    """What an optimizer applies is counted there; who averages the gradients may be the tape."""
    if tape.keys & optimizer.keys:
        tape.training.end()
        if optimizer.training.ranks is None:
            optimizer.training.ranks = tape.training.ranks
        tape.training.ranks = None


def _caller() -> FrameType:
    """Where the script, or a library that is none of Horovod's, takes gradients."""
    frame = sys._getframe(2)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _LIBRARIES:
        frame = frame.f_back
    return frame


def _is_trained(variable: Any) -> bool:
    own = _plain(variable)
    return isinstance(own, tf.Variable) and bool(own.trainable)


def _plain(variable: Any) -> Any:
    """TensorFlow's variable in one of Keras's; anything else as it is."""
    value = getattr(variable, "_value", None)
    return value if isinstance(value, tf.Variable) else variable


def _weight(variable: Any) -> Weight:
    own = _plain(variable)
    dtype = own.dtype.name if own.shape.is_fully_defined() else "unknown"
    name = str(getattr(variable, "path", own.name)).partition(":")[0]
    shape = tuple(own.shape.as_list()) if dtype in PRECISIONS else ()
    return Weight(name, dtype, shape, _Numbers(own, shape))


class _Numbers:
    """Reads some of a variable: in its place where that can be, or else without bringing all of it here."""

    def __init__(self, variable: Any, shape: tuple[int, ...]) -> None:
        self._variable = weakref.ref(variable)
        self._places = np.asarray(places(math.prod(shape)))
        self._is_here = "CPU" in variable.device and variable.dtype != tf.bfloat16  # which numpy does not know

    def __call__(self) -> list[float]:
        variable = self._variable()
        if variable is None:
            raise ReferenceError("the variable is gone")
        if self._is_here and hasattr(variable, "handle"):
            value = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)
            some = np.asarray(memoryview(value)).take(self._places)
        else:
            with tf.device(variable.device):
                some = tf.gather(tf.reshape(variable.read_value(), [-1]), self._places).numpy()
        numbers: list[float] = some.astype("float64").tolist()
        return numbers
