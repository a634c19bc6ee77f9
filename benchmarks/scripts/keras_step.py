"""Trains a model of 1.9 million parameters with Horovod, and prints when groups of steps began and ended.

    keras_step.py adapted|bare|stock loop|fit --groups 5

`adapted` is Horovod's own name on Keras 3, `bare` an optimizer of Keras 3 with an allreduce and nothing else, and
`stock` Horovod as it is, for Keras 2.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("way", choices=["adapted", "bare", "stock"])
parser.add_argument("training", choices=["loop", "fit"])
parser.add_argument("--groups", type=int, default=5)
settings = parser.parse_args()
if settings.way == "adapted":
    import estimator_container.horovod_keras3  # noqa: F401

FEATURES, WIDTH, CLASSES, BATCH, STEPS = 784, 1024, 10, 32, 40
keras = tf.keras


def optimizer() -> object:
    given = keras.optimizers.SGD(0.001, momentum=0.9)
    if settings.way != "bare":
        return hvd.DistributedOptimizer(given)

    class Bare(keras.optimizers.SGD):
        def apply(self, grads: list, trainable_variables: list | None = None) -> None:
            from horovod.tensorflow import allreduce

            averaged = [allreduce(grad, name=f"gradients.{number}") for number, grad in enumerate(grads)]
            super().apply(averaged, trainable_variables)

    return Bare.from_config(given.get_config())


def said(begun: float) -> None:
    if hvd.rank() == 0:
        os.write(1, f"steps {begun:.6f} {time.time():.6f} {STEPS}\n".encode())


class Groups(keras.callbacks.Callback):
    """An epoch is a group."""

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self.begun = time.time()

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        said(self.begun)


def fit(model: object, data: object) -> None:
    model.compile(optimizer(), loss="sparse_categorical_crossentropy", jit_compile=False)
    model.fit(data, epochs=1 + settings.groups, steps_per_epoch=STEPS, verbose=0, callbacks=[Groups()])


def loop(model: object, data: object) -> None:
    loss_of, chosen = keras.losses.SparseCategoricalCrossentropy(), optimizer()

    @tf.function
    def step(inputs: tf.Tensor, targets: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = loss_of(targets, model(inputs, training=True))
        variables = model.trainable_variables
        if settings.way == "stock":  # which reduces nothing that comes by apply_gradients, and says so
            chosen.minimize(loss, variables, tape=tape)
        else:
            chosen.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    batches = iter(data)
    for _ in range(1 + settings.groups):
        begun = time.time()
        for _ in range(STEPS):
            step(*next(batches))
        said(begun)


hvd.init()
tf.config.threading.set_intra_op_parallelism_threads(1)
keras.utils.set_random_seed(hvd.rank())
layers = [keras.layers.Dense(WIDTH, "relu"), keras.layers.Dense(WIDTH, "relu"), keras.layers.Dense(CLASSES, "softmax")]
model = keras.Sequential([keras.layers.Input((FEATURES,)), *layers])
numbers = np.random.default_rng(hvd.rank())
inputs = numbers.normal(size=(BATCH, FEATURES)).astype("float32")
targets = numbers.integers(0, CLASSES, BATCH)
data = tf.data.Dataset.from_tensors((inputs, targets)).repeat()
(fit if settings.training == "fit" else loop)(model, data)
