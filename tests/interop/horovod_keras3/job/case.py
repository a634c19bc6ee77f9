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
    agree: Sequence[int] = (0, 1, 2, 3)
    """The ranks that must hold the same, bit for bit."""


def share(rank: int) -> Batch:
    """All examples of a rank, in their order."""
    inputs = np.random.default_rng(rank).normal(size=(BATCH * STEPS, FEATURES)).astype("float32")
    return inputs, (inputs.sum(axis=1, keepdims=True) * (rank + 1)).astype("float32")


def joint(ranks: Sequence[int] | None = None) -> list[Batch]:
    """The batches of all ranks put together, step by step."""
    shares = [share(rank) for rank in (range(hvd.size()) if ranks is None else ranks)]
    return [
        tuple(np.concatenate([part[step * BATCH : (step + 1) * BATCH] for part in parts]) for parts in zip(*shares))
        for step in range(STEPS)
    ]


def own() -> list[Batch]:
    return joint([hvd.rank()])


def network(seed: int = 0) -> keras.Model:
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [keras.Input((FEATURES,)), keras.layers.Dense(2, name="first"), keras.layers.Dense(1, name="last")]
    )


def alone(
    optimizer: keras.optimizers.Optimizer,
    batches: list[Batch] | None = None,
    model: keras.Model | None = None,
    **compiled: Any,
) -> Weights:
    """The weights that one process comes to, on the joint batches; what all ranks must hold, rank 0 alone computes."""
    if batches is None and hvd.rank() > 0:
        return []
    if batches is model is None and not compiled:
        return _alone(json.dumps(keras.optimizers.serialize(optimizer)["config"] | {"name": type(optimizer).__name__}))
    model = model or network()
    model.compile(optimizer, loss="mse", run_eagerly=True, **compiled)
    for inputs, targets in joint() if batches is None else batches:
        model.train_on_batch(inputs, targets)
    optimizer.finalize_variable_values(model.trainable_variables)
    return model.get_weights()


@functools.cache
def _alone(config: str) -> Weights:
    """The same for the network and batches of most cases."""
    settings = json.loads(config)
    optimizer = keras.optimizers.deserialize({"class_name": settings["name"], "config": settings})
    return alone(optimizer, joint())


def fit(
    optimizer: keras.optimizers.Optimizer,
    model: keras.Model | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    epochs: int = 1,
    **compiled: Any,
) -> Weights:
    """The weights that `model.fit` comes to on this rank's share."""
    model = model or network()
    model.compile(optimizer, loss=keras.losses.MeanSquaredError(), **compiled)
    model.fit(*share(hvd.rank()), batch_size=BATCH, shuffle=False, epochs=epochs, verbose=0, callbacks=list(callbacks))
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
