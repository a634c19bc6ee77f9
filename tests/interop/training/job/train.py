"""Trains a small model with TensorFlow and Horovod in the way that is named."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.modules["sklearn"] = None  # Keras would import it for its own wrappers: a fifth of the start

import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

hvd.init()
EVEN_SECONDS = 20.0
"""In which a rank that is slow would be named, on a busy machine too."""
ENOUGH = Path(os.environ["SM_OUTPUT_DATA_DIR"], "enough")
"""A file that ends the training; on one of the hosts it is enough."""


def fit() -> None:
    """Three epochs of five steps, with an evaluation after each."""
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    data = np.ones((20, 4)), np.ones((20, 1))
    model.fit(*data, batch_size=4, epochs=3, validation_data=data, verbose=0)


def steps(is_over: Callable[[float], bool], work: float, noise: float = 0.0) -> None:
    """Train until any rank says that it is over after so many seconds.

    Before each step, which averages with the others, there are so many seconds of work.
    """
    weights, optimizer = tf.Variable([1.0, 2.0]), keras.optimizers.SGD(0.001)

    @tf.function
    def step(x: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * x)
        averaging = hvd.DistributedGradientTape(tape)
        optimizer.apply_gradients(zip(averaging.gradient(loss, [weights]), [weights], strict=True))

    chosen = random.Random(hvd.rank())
    began = time.monotonic()
    while not hvd.allreduce(tf.constant(float(is_over(time.monotonic() - began))), op=hvd.Max, name="over"):
        time.sleep(work + chosen.uniform(0, noise))
        step(tf.constant([1.0, 2.0]))


def even_then_slow() -> None:
    steps(lambda seconds: seconds > EVEN_SECONDS, 0.2, noise=0.2)
    if hvd.rank() == 0:
        print("from now on rank 1 is slow", flush=True)
    steps(lambda _: ENOUGH.exists(), 1.2 if hvd.rank() == 1 else 0.8)


def until_stopped() -> None:
    steps(lambda _: False, 0.02)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
