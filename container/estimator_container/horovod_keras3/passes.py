"""Several backward passes for one step: gradients add up on each rank, and travel once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from .reduction import Gradient, Gradients, Reduction, plain


class Passes:
    """What `backward_passes_per_step` gradients of an optimizer have come to so far.

    `counter` says how many they are; it is 0 when the optimizer is to apply what has been reduced.
    """

    def __init__(self, reduction: Reduction) -> None:
        self._reduction = reduction
        self._sums: dict[Any, tf.Variable] = {}
        with tf.init_scope():
            self.counter = tf.Variable(0, trainable=False)

    def add(self, gradients: Sequence[Gradient | None], variables: Sequence[Any]) -> Gradients:
        """Add one pass. Returns the reduced sum or mean after the last one, and what there is so far after others."""
        there = [index for index, gradient in enumerate(gradients) if gradient is not None]
        sums = [self._sum_of(variables[index]) for index in there]
        for index, sum_ in zip(there, sums):
            sum_.assign_add(tf.cast(tf.convert_to_tensor(gradients[index]), sum_.dtype))
        self.counter.assign_add(1)
        owners = [variables[index] for index in there]
        result: Gradients = [None] * len(gradients)
        passes = self._reduction.settings.backward_passes_per_step
        after = tf.cond(
            tf.equal(self.counter, passes),
            lambda: self._reduced(sums, owners, passes),
            lambda: [sum_.read_value() for sum_ in sums],
        )
        for index, gradient in zip(there, after):
            result[index] = gradient
        return result

    def _reduced(self, sums: list[tf.Variable], owners: list[Any], passes: int) -> list[tf.Tensor]:
        divisor = passes if self._reduction.settings.average_aggregated_gradients else 1
        reduced = self._reduction.reduced([sum_.read_value() / divisor for sum_ in sums], owners)
        self.counter.assign(0)
        for sum_ in sums:
            sum_.assign(tf.zeros_like(sum_))
        return [tf.identity(gradient) for gradient in reduced]

    def apply(self, apply: Callable[[], object], iterations: Any) -> None:
        """Apply after the last pass; after each other only count the iteration."""

        def step() -> tf.Tensor:
            apply()
            return tf.constant(True)

        def no_step() -> tf.Tensor:
            plain(iterations).assign_add(1)
            return tf.constant(False)

        tf.cond(tf.equal(self.counter, 0), step, no_step)

    def _sum_of(self, variable: Any) -> tf.Variable:
        own = plain(variable)
        key = own.ref()
        if key not in self._sums:
            with tf.init_scope():
                self._sums[key] = tf.Variable(tf.zeros(own.shape, own.dtype), trainable=False)
        return self._sums[key]
