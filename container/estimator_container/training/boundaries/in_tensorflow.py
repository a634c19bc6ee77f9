"""Where TensorFlow waits for input and for gradients, and writes checkpoints.

A `tf.function` does so without Python. There two more operations read the clock, before and after, and a third one
adds the difference to a variable, which the account reads as a gauge.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import tensorflow as tf

from ..page import CHECKPOINT, COMMUNICATION, INPUT
from ..step_account import StepAccount
from ..trials import left_out, words
from .timed import timed

_REPLAYED = "_estimator_replayed"
"""Where a dataset has the one that gives its first batch again and again."""


class GraphStopwatch:
    """Sums up the seconds between two points of graphs."""

    def __init__(self, account: StepAccount, kind: int) -> None:
        self._account = account
        self._kind = kind
        self._seconds: Any = None
        self._newest = 0

    def begin(self, after: Sequence[Any]) -> Any:
        """The first point: when all of these tensors are there, or when the graph begins."""
        self._make_variable()
        return _now(after)

    def end(self, began: Any, after: Sequence[Any]) -> Any:
        """The second one, which it returns: when all of these are there."""
        ended = _now(after)
        self._seconds.assign_add(ended - began)
        return ended

    def _make_variable(self) -> None:
        if self._seconds is None:
            with tf.init_scope(), tf.device("/CPU:0"):
                self._seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False, name="seconds_spent")
            if tf.config.list_logical_devices("GPU"):
                self._account.knows_idle = False
            self._account.add_gauge(self._kind, self._nanoseconds)

    def _nanoseconds(self) -> int:
        if tf.executing_eagerly():  # or the newest value will do
            # What `numpy()` of a variable does besides takes three times as long.
            self._newest = round(
                1e9 * float(tf.raw_ops.ReadVariableOp(resource=self._seconds.handle, dtype=tf.float64))
            )
        return self._newest


def watch_iterators(iterator_ops: ModuleType, account: StepAccount) -> None:
    """The batches of `tf.data`, as `fit` of Keras takes them, too; not those of a distribution strategy."""
    iterator: Any = iterator_ops.OwnedIterator
    stock, stopwatch = iterator._next_internal, GraphStopwatch(account, INPUT)
    eagerly = timed(stock, account, INPUT)

    @functools.wraps(stock)
    def _next_internal(self: Any) -> Any:
        if tf.executing_eagerly():
            return eagerly(self)
        if tf.distribute.has_strategy() or not tf.inside_function():
            return stock(self)
        began = stopwatch.begin(())
        with tf.control_dependencies([began]):
            batch = stock(self)
        ended = stopwatch.end(began, tf.nest.flatten(batch, expand_composites=True))
        with tf.control_dependencies([ended]):  # or a thread that is alone would compute before it reads the clock
            return tf.nest.map_structure(tf.identity, batch, expand_composites=True)

    iterator._next_internal = _next_internal


def watch_datasets(dataset_ops: ModuleType, account: StepAccount) -> None:
    """In a trial that replays, a dataset gives its first batch as often as it has batches.

    In one of advice it reads ahead, maps with several calls at once, keeps what it has mapped, and takes more at once
    from Python.
    """
    if not any(map(words.has, (words.REPLAY, words.PREFETCH, words.PARALLEL, words.KEEP, words.STACK, words.LOOK))):
        return
    from ..trials import applied, from_python, kept, watch

    dataset: Any = dataset_ops.DatasetV2
    if words.has(words.STACK):
        from_python.in_stacks(dataset, words.number(words.STACK))
    if words.has(words.LOOK):
        watch.making = from_python.measured(dataset)
    if words.has(words.PARALLEL):
        applied.mapped_in_parallel(dataset, tf.data.AUTOTUNE)
    if words.has(words.KEEP):
        kept.mapped_once(dataset)
    stock = dataset.__iter__

    @functools.wraps(stock)
    def __iter__(self: Any) -> Any:
        is_first = words.has(words.LOOK) and watch.saw_loader("tf.data")
        if is_first and tf.executing_eagerly():
            watch.saw_loader("tf.data", waits_in_turn=kept.waits_in_turn(self), **kept.size_of(self))
        return stock(_in_trial(self) if tf.executing_eagerly() else self)

    dataset.__iter__ = __iter__


def _in_trial(dataset: Any) -> Any:
    if words.has(words.REPLAY):
        count, known = int(dataset.cardinality()), vars(dataset)
        if _REPLAYED not in known:  # each epoch iterates, and would make the first batch again
            replayed = dataset.take(1).cache().repeat(count if count > 0 else None)
            known[_REPLAYED] = replayed.with_options(_as_it_is())
        return known[_REPLAYED]
    return dataset.prefetch(words.number(words.PREFETCH)) if words.has(words.PREFETCH) else dataset


def _as_it_is() -> tf.data.Options:
    """With which TensorFlow improves nothing, which takes longer than to give one batch again."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options


def watch_reduction(reduction: ModuleType, account: StepAccount) -> None:
    """Gradients that are reduced over the ranks: from when the last of a rank's own is there, until all are reduced.

    What is reduced while others are still computed costs the step nothing.
    """
    cls: Any = reduction.Reduction
    stock: Callable[..., Any] = cls.reduced
    stopwatch, eagerly = GraphStopwatch(account, COMMUNICATION), timed(stock, account, COMMUNICATION)

    @functools.wraps(stock)
    def reduced(self: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> Any:
        if tf.executing_eagerly():
            return eagerly(self, gradients, variables)
        before = _tensors(gradients)
        if not before or tf.distribute.has_strategy() or not tf.inside_function():
            return stock(self, gradients, variables)
        began = stopwatch.begin(before)
        result = stock(self, gradients, variables)
        stopwatch.end(began, _tensors(result))
        return result

    cls.reduced = reduced


def watch_saving(checkpoint: ModuleType, account: StepAccount) -> None:
    """`tf.train.Checkpoint` and what stands on it."""
    saver: Any = checkpoint.TrackableSaver
    saver.save = timed(left_out.saving(saver.save), account, CHECKPOINT)


def _now(after: Sequence[Any]) -> Any:
    with tf.control_dependencies(after), tf.device("/CPU:0"):
        return tf.timestamp()


def _tensors(gradients: Sequence[Any]) -> list[Any]:
    found = [gradient for gradient in gradients if gradient is not None]
    return list(tf.nest.flatten(found, expand_composites=True))
