"""Trains a small model by `fit` of Keras with Horovod, slow in the way that is named: `slow_keras.py WAY SHARE`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import horovod.tensorflow.keras as hvd
import keras
import numpy as np
import tensorflow as tf
import truth

hvd.init()
keras.utils.set_random_seed(0)
WAY, SHARE = sys.argv[1], float(sys.argv[2])
STEPS, STEP = 150, 0.1
EXTRA = SHARE * STEP
"""Of a step, which computes in all the rest."""
CHECKPOINT_STEPS = 10


def spends(way: str) -> bool:
    """Whether this rank spends time on that."""
    return way == WAY or (way == "input" and WAY == "slow rank" and hvd.rank() == 1)


def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for _ in range(STEPS + 1):
        if spends("input"):
            truth.sleep("input", EXTRA)
        yield np.ones((4, 4), "float32"), np.ones((4, 1), "float32")


class Slow(keras.layers.Layer):
    """Computes for so long in each step, and takes long to be saved."""

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        with tf.control_dependencies([tf.py_function(self.work, [inputs], [])]):
            return tf.identity(inputs)

    def work(self, inputs: tf.Tensor) -> None:
        truth.spin(STEP - EXTRA)
        if spends("idle"):
            truth.sleep("idle", EXTRA)

    def save_own_variables(self, store: dict[str, object]) -> None:
        if spends("checkpoint"):
            truth.sleep("checkpoint", CHECKPOINT_STEPS * EXTRA)


class Truth(keras.callbacks.Callback):
    """Hears of the steps."""

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        if batch == 0:
            truth.first_step_ended()
        if batch and batch % CHECKPOINT_STEPS == 0 and hvd.rank() == 0 and WAY == "checkpoint":
            self.model.save_weights(f"{os.environ['SM_CHECKPOINT_DIR']}/{batch}.weights.h5")

    def on_train_end(self, logs: object = None) -> None:
        truth.tell()


def slow_allreduce(stock):
    """The same, after a while that the network takes for nothing of ours."""

    def allreduce(tensor, **arguments):
        with tf.control_dependencies([tensor]):
            slept = tf.py_function(lambda: truth.sleep("communication", EXTRA), [], [])
        with tf.control_dependencies([slept]):
            return stock(tf.identity(tensor), **arguments)

    return allreduce


if WAY == "communication":
    import horovod.tensorflow

    horovod.tensorflow.allreduce = slow_allreduce(horovod.tensorflow.allreduce)
model = keras.Sequential([keras.layers.Input((4,)), Slow(), keras.layers.Dense(1, use_bias=False)])
model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.001)), "mse", jit_compile=False)
kinds = tf.TensorSpec((4, 4), tf.float32), tf.TensorSpec((4, 1), tf.float32)
options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False  # what is loaded ahead of time is not waited for
data = tf.data.Dataset.from_generator(batches, output_signature=kinds).with_options(options)
model.fit(data, callbacks=[Truth()], verbose=0)
