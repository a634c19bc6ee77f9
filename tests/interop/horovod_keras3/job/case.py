"""What a case stands on: the batches of ranks, a small model, and the training of one process beside it."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

BATCH, STEPS, FEATURES = 4, 4, 3
EVENS = hvd.ProcessSet([0, 2])
Weights = list[np.ndarray]
Batch = tuple[np.ndarray, np.ndarray]


class Outcome(NamedTuple):
    """What a case comes to on this rank."""

    weights: Weights
    expected: Weights
    """Empty on a rank that leaves the comparison to rank 0."""
    tolerance: float = 2e-6
    """The greatest difference that the order of sums explains."""
    agree: Sequence[int] | None = None
    """The ranks that must hold the same, bit for bit; None is all of them."""


Case = Callable[[], Outcome]


def variant(case: Case) -> Case:
    """Of a case that goes another way through what another case has tried: `scripts/test --all` alone runs it."""
    return case


def share(rank: int) -> Batch:
    """All examples of a rank, in their order."""
    inputs = np.random.default_rng(rank).normal(size=(BATCH * STEPS, FEATURES)).astype("float32")
    return inputs, (inputs.sum(axis=1, keepdims=True) * (rank + 1)).astype("float32")


@functools.cache
def joint(ranks: Sequence[int] | None = None) -> list[Batch]:
    """The batches of all ranks put together, step by step."""
    shares = [share(rank) for rank in (range(hvd.size()) if ranks is None else ranks)]
    return [
        tuple(np.concatenate([part[step * BATCH : (step + 1) * BATCH] for part in parts]) for parts in zip(*shares))
        for step in range(STEPS)
    ]


@functools.cache
def pairs() -> list[Batch]:
    """The joint batches, two and two put together."""
    batches = joint()
    return [tuple(np.concatenate(parts) for parts in zip(*batches[at : at + 2])) for at in range(0, STEPS, 2)]


def own() -> list[Batch]:
    return joint((hvd.rank(),))


@functools.cache
def dataset() -> tf.data.Dataset:
    """This rank's batches. Of arrays, Keras would make a pipeline for each `fit`, and trace its functions."""
    return tf.data.Dataset.from_tensor_slices(share(hvd.rank())).batch(BATCH)


def network(seed: int = 0, layers: int = 1) -> keras.Model:
    """Of one layer where a case asks for no more: each takes time to trace."""
    keras.utils.set_random_seed(seed)
    hidden = [keras.layers.Dense(2) for _ in range(layers - 1)]
    return keras.Sequential([keras.Input((FEATURES,)), *hidden, keras.layers.Dense(1)])


@keras.saving.register_keras_serializable()
def squares(targets: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
    """The loss, whose mean Keras takes. Its own class for it takes a quarter longer to trace a step."""
    return tf.square(tf.cast(outputs, tf.float32) - targets)


def alone(
    optimizer: keras.optimizers.Optimizer,
    batches: list[Batch] | None = None,
    model: keras.Model | None = None,
    everywhere: bool = False,
) -> Weights:
    """The weights that one process comes to, on the joint batches unless it is given others.

    What all ranks must hold, rank 0 alone computes; `everywhere` is for what differs from rank to rank.
    """
    if hvd.rank() > 0 and not everywhere:
        return []
    batches = joint() if batches is None else batches
    if model is not None:
        return _trained(optimizer, batches, model)
    key = json.dumps([type(optimizer).__name__, id(batches), optimizer.get_config()])
    if key not in _trained_before:
        _trained_before[key] = _trained(optimizer, batches, network())
    return _trained_before[key]


_trained_before: dict[str, Weights] = {}


def _trained(optimizer: keras.optimizers.Optimizer, batches: list[Batch], model: keras.Model) -> Weights:
    for inputs, targets in batches:
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(tf.reduce_mean(squares(targets, model(inputs, training=True))))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    optimizer.finalize_variable_values(model.trainable_variables)
    return model.get_weights()


def fit(
    optimizer: keras.optimizers.Optimizer,
    model: keras.Model | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    epochs: int = 1,
    **compiled: Any,
) -> Weights:
    """The weights that `model.fit` comes to on this rank's share."""
    model = model or network()
    model.compile(optimizer, loss=squares, **compiled)
    model.fit(dataset(), epochs=epochs, verbose=0, callbacks=list(callbacks))
    return model.get_weights()


def loop(
    optimizer: Any,
    model: keras.Model | None = None,
    tape: Callable[[tf.GradientTape], tf.GradientTape] = lambda tape: tape,
    function: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda step: step,
    apply: Callable[[Any, Any, Any], object] = lambda optimizer, grads, variables: optimizer.apply_gradients(
        zip(grads, variables)
    ),
) -> Weights:
    """The weights that a training loop of one's own comes to on this rank's share."""
    model = model or network()

    @function
    def step(inputs: Any, targets: Any) -> None:
        with tf.GradientTape() as recorded:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
        gradients = tape(recorded).gradient(loss, model.trainable_variables)
        apply(optimizer, gradients, model.trainable_variables)

    for inputs, targets in own():
        step(tf.constant(inputs), tf.constant(targets))
    return model.get_weights()


def digest(weights: Weights) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(weight).tobytes() for weight in weights)).hexdigest()
