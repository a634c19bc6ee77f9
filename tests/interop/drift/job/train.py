"""Trains in several ways on TensorFlow, on all ranks; the words of the command line choose which, in their order."""

from __future__ import annotations

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.modules["sklearn"] = None  # Keras would import it for its own wrappers: a fifth of the start

import horovod.keras
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import keras
import numpy as np
import tensorflow as tf
from estimator_container import keras_horovod

STEPS = 12
RANK = int(os.environ["RANK"])


def model(name: str) -> keras.Model:
    """The same weights on every rank."""
    keras.utils.set_random_seed(0)
    layers = [keras.Input((4,)), keras.layers.Dense(8, "tanh", name="hidden"), keras.layers.Dense(1, name="out")]
    return keras.Sequential(layers, name=name)


def data(seed: int = RANK) -> tuple[np.ndarray, np.ndarray]:
    """A rank's own."""
    inputs = np.random.default_rng(seed).normal(size=(STEPS * 4, 4)).astype("float32")
    return inputs, inputs.sum(axis=1, keepdims=True)


def batches(seed: int = RANK) -> list[tuple[np.ndarray, np.ndarray]]:
    inputs, outputs = data(seed)
    return [(inputs[at : at + 4], outputs[at : at + 4]) for at in range(0, len(inputs), 4)]


def fit(name: str, optimizer: keras.optimizers.Optimizer, epochs: int = 1, broadcast: bool = True) -> None:
    net = model(name)
    net.compile(optimizer, loss="mse", jit_compile=False)
    callbacks = [hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)] if broadcast else []
    net.fit(*data(), batch_size=4, epochs=epochs, verbose=0, callbacks=callbacks)


def loop(net: keras.Model, optimizer: keras.optimizers.Optimizer, tape_of=lambda tape: tape) -> None:
    """A loop of the script's own, in a function."""

    @tf.function
    def step(inputs, outputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(inputs) - outputs) ** 2)
        gradients = tape_of(tape).gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables))

    for batch in batches():
        step(*batch)


class Line(tf.Module):
    """A model without Keras."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = tf.Variable(tf.zeros([4, 1]), name="slope")  # with ones there would be nothing to learn
        self.bias = tf.Variable(tf.zeros([1]), name="bias")


def by_hand(in_function: bool) -> None:
    line = Line()

    def step(inputs, outputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((inputs @ line.slope + line.bias - outputs) ** 2)
        for variable, gradient in zip(line.trainable_variables, tape.gradient(loss, line.trainable_variables)):
            variable.assign_sub(0.1 * gradient)

    chosen = tf.function(step) if in_function else step
    for batch in batches():
        chosen(*batch)


def start_horovod() -> None:
    hvd.init()


# Each of these ought to be found.


def fit_alone() -> None:
    fit("fit_alone", keras.optimizers.Adam(0.01))


def loop_alone() -> None:
    loop(model("loop_alone"), keras.optimizers.SGD(0.1))


def eager_alone() -> None:
    tf.config.run_functions_eagerly(True)
    loop(model("eager_alone"), keras.optimizers.SGD(0.1))
    tf.config.run_functions_eagerly(False)


def module_alone() -> None:
    by_hand(in_function=True)


def eager_module_alone() -> None:
    by_hand(in_function=False)


def forgotten_broadcast() -> None:
    net = model("forgotten_broadcast")
    net.layers[0].kernel.assign_add(tf.fill([4, 8], 0.01 * RANK))
    loop(net, hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.1)))


# None of these is to be found.


def fit_for_long() -> None:
    """Found with Horovod as it is, whose optimizer averages nothing on Keras 3."""
    fit("fit_for_long", hvd_keras.DistributedOptimizer(keras.optimizers.Adam(0.01)), epochs=200, broadcast=False)


def fit_averaged() -> None:
    fit("fit_averaged", hvd_keras.DistributedOptimizer(keras.optimizers.Adam(0.01)))


def tape_averaged() -> None:
    loop(model("tape_averaged"), keras.optimizers.SGD(0.1), hvd.DistributedGradientTape)


def averaged_by_adasum() -> None:
    """Each rank's gradients are its own: were the ranks not kept alike, this would be found as well."""
    loop(model("averaged_by_adasum"), keras_horovod.DistributedOptimizer(keras.optimizers.SGD(0.1), op=hvd.Adasum))


def own_variables() -> None:
    net = model("own_variables")

    def local(tape):
        distributed = hvd.DistributedGradientTape(tape)
        for variable in net.layers[0].trainable_variables:
            distributed.register_local_source(variable)
        return distributed

    loop(net, keras.optimizers.SGD(0.1), local)


def own_variables_of_an_optimizer() -> None:
    net = model("own_variables_of_an_optimizer")
    optimizer = horovod.keras.PartialDistributedOptimizer(keras.optimizers.SGD(0.1), local_layers=[net.layers[0]])
    loop(net, optimizer)


def two_models_against_each_other() -> None:
    """As a generative adversarial network has them; each rank's noise is its own."""
    maker, critic = model("maker"), model("critic")
    optimizers = [hvd_keras.DistributedOptimizer(keras.optimizers.Adam(0.01)) for _ in range(2)]
    for inputs, outputs in batches():
        for net, other, optimizer in ((maker, critic, optimizers[0]), (critic, maker, optimizers[1])):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((net(inputs) - other(inputs) - outputs) ** 2)
            gradients = tape.gradient(loss, net.trainable_variables)
            optimizer.apply_gradients(zip(gradients, net.trainable_variables))


def split_model() -> None:
    """Each rank has its own part, by its own name."""
    loop(model(f"part_{RANK}"), keras.optimizers.SGD(0.1))


def other_shapes() -> None:
    line = tf.Variable(tf.ones([RANK + 1]), name="line")
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(line**2) * (RANK + 1.0)
        line.assign_sub(0.1 * tape.gradient(loss, line))


def copied() -> None:
    """Copies of what is watched are whole, and are the script's own."""
    import copy

    optimizer = keras.optimizers.SGD(0.1)
    net = model("copied")
    inputs, outputs = batches()[0]
    for each in (optimizer, copy.deepcopy(optimizer)):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(inputs) - outputs) ** 2)
        each.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))


def joined() -> None:
    """One rank does a step more, all meet, and then all do the same."""
    net, optimizer = model("joined"), keras.optimizers.SGD(0.1)

    def step(inputs: np.ndarray, outputs: np.ndarray) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(inputs) - outputs) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))

    for batch in batches(seed=0)[: 1 + RANK]:
        step(*batch)
    hvd.join()
    hvd.broadcast_variables(net.trainable_variables, 0)
    for batch in batches(seed=0):
        step(*batch)


def in_process_sets() -> None:
    """Each rank averages with itself alone."""
    own = [hvd.add_process_set([rank]) for rank in range(hvd.size())][RANK]
    loop(
        model("in_process_sets"), horovod.keras.PartialDistributedOptimizer(keras.optimizers.SGD(0.1), process_set=own)
    )
    hvd.join()  # the first rank to leave ends Horovod on all, and with it their sets


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for name in sys.argv[1:]:
        globals()[name]()
        keras.backend.clear_session()
