"""Trains a small model with TensorFlow and Horovod in the way that is named."""

from __future__ import annotations

import os
import random
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

hvd.init()
EVEN_SECONDS = 24.0
SLOW_SECONDS = 40.0
"""In each of them a rank would be named, on a busy machine too; the first window after the even run belongs to both."""


def fit() -> None:
    """Three epochs of five steps, with an evaluation after each."""
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    data = np.ones((20, 4)), np.ones((20, 1))
    model.fit(*data, batch_size=4, epochs=3, validation_data=data, verbose=0)


def steps(seconds: float, work: float, noise: float = 0.0) -> None:
    """So many seconds of work before each step, which averages with the others."""
    weights, optimizer = tf.Variable([1.0, 2.0]), keras.optimizers.SGD(0.001)

    @tf.function
    def step(x: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * x)
        averaging = hvd.DistributedGradientTape(tape)
        optimizer.apply_gradients(zip(averaging.gradient(loss, [weights]), [weights], strict=True))

    chosen = random.Random(hvd.rank())
    began = time.monotonic()
    while hvd.allreduce(tf.constant(time.monotonic() - began), op=hvd.Max, name="time") < seconds:
        time.sleep(work + chosen.uniform(0, noise))
        step(tf.constant([1.0, 2.0]))


def even_then_slow() -> None:
    steps(EVEN_SECONDS, 0.2, noise=0.2)
    if hvd.rank() == 0:
        print("from now on rank 1 is slow", flush=True)
    steps(SLOW_SECONDS, 0.45 if hvd.rank() == 1 else 0.3)


def until_stopped() -> None:
    steps(3600, 0.02)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
