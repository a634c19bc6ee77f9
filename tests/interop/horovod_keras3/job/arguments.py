"""The arguments of `DistributedOptimizer`, one after the other."""

from __future__ import annotations

import horovod.keras
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import keras
import numpy as np
import tensorflow as tf
from case import BATCH, EVENS, Outcome, alone, fit, joint, loop, network, own, pairs, variant
from estimator_container import keras_horovod
from keras.optimizers import SGD


def case_op_sum_on_fit() -> Outcome:
    return Outcome(fit(hvd_keras.DistributedOptimizer(SGD(0.01), op=hvd.Sum)), alone(SGD(0.01 * hvd.size())))


@variant
def case_op_sum_on_a_loop() -> Outcome:
    return Outcome(loop(hvd_keras.DistributedOptimizer(SGD(0.01), op=hvd.Sum)), alone(SGD(0.01 * hvd.size())))


@variant
def case_op_adasum_on_a_loop() -> Outcome:
    """Of a number of ranks that is a power of two."""
    weights = loop(keras_horovod.DistributedOptimizer(SGD(0.01), op=hvd.Adasum), function=tf.function)
    return Outcome(weights, alone(SGD(0.01)), tolerance=0.5)  # it is another sum; that ranks agree is what counts


def case_compression_on_fit() -> Outcome:
    optimizer = hvd_keras.DistributedOptimizer(SGD(0.1), compression=hvd.Compression.fp16)
    return Outcome(fit(optimizer), alone(SGD(0.1)), tolerance=5e-3)


@variant
def case_compression_on_a_loop() -> Outcome:
    optimizer = hvd.DistributedOptimizer(SGD(0.1), compression=hvd.Compression.fp16)
    return Outcome(loop(optimizer), alone(SGD(0.1)), tolerance=5e-3)


def case_gradient_predivide_factor_on_fit() -> Outcome:
    return Outcome(fit(hvd_keras.DistributedOptimizer(SGD(0.1), gradient_predivide_factor=2.0)), alone(SGD(0.1)))


@variant
def case_gradient_predivide_factor_on_a_loop() -> Outcome:
    return Outcome(loop(horovod.keras.DistributedOptimizer(SGD(0.1), gradient_predivide_factor=4.0)), alone(SGD(0.1)))


def case_groups_by_their_number_on_fit() -> Outcome:
    return Outcome(fit(hvd_keras.DistributedOptimizer(SGD(0.1), groups=3)), alone(SGD(0.1)))


@variant
def case_groups_by_the_former_name_on_a_loop() -> Outcome:
    return Outcome(loop(hvd_keras.DistributedOptimizer(SGD(0.1), num_groups=2)), alone(SGD(0.1)))


@variant
def case_groups_of_variables_on_fit() -> Outcome:
    model = network(layers=2)
    groups = [model.layers[1].trainable_variables[::-1]]
    weights = fit(hvd_keras.DistributedOptimizer(SGD(0.1), groups=groups), model)
    return Outcome(weights, alone(SGD(0.1), model=network(layers=2)))


@variant
def case_groups_of_variables_on_a_tape() -> Outcome:
    model = network(layers=2)
    groups = [model.layers[0].trainable_variables]
    weights = loop(SGD(0.1), model, lambda tape: hvd.DistributedGradientTape(tape, groups=groups))
    return Outcome(weights, alone(SGD(0.1), model=network(layers=2)))


def case_name_and_devices_on_fit() -> Outcome:
    optimizer = hvd_keras.DistributedOptimizer(SGD(0.1), name="mine", device_dense="/cpu:0", device_sparse="/cpu:0")
    return Outcome(fit(optimizer), alone(SGD(0.1)))


def of_the_evens() -> tuple[list, dict]:
    """The batches of this rank's part of the world, and who is in it."""
    if hvd.rank() in EVENS.ranks:
        return joint(tuple(EVENS.ranks)), {"agree": EVENS.ranks}
    return own(), {"agree": EVENS.ranks}


def case_process_set_on_fit() -> Outcome:
    batches, agree = of_the_evens()
    optimizer = hvd_keras.DistributedOptimizer(SGD(0.1), process_set=EVENS)
    return Outcome(fit(optimizer), alone(SGD(0.1), batches, everywhere=True), **agree)


@variant
def case_process_set_on_a_loop() -> Outcome:
    batches, agree = of_the_evens()
    optimizer = horovod.keras.PartialDistributedOptimizer(SGD(0.1), process_set=EVENS)
    return Outcome(loop(optimizer), alone(SGD(0.1), batches, everywhere=True), **agree)


@variant
def case_process_set_on_a_tape() -> Outcome:
    batches, agree = of_the_evens()
    weights = loop(SGD(0.1), tape=lambda tape: hvd.DistributedGradientTape(tape, process_set=EVENS))
    return Outcome(weights, alone(SGD(0.1), batches, everywhere=True), **agree)


def case_local_layer_of_a_partial_optimizer() -> Outcome:
    """The joint batch's gradient of the other layer depends on the local one, so one step is compared."""
    model = network(layers=2)
    optimizer = horovod.keras.PartialDistributedOptimizer(SGD(0.1), local_layers=model.layers[0])
    return after_one_step(
        lambda gradients, variables: optimizer.apply_gradients(zip(gradients, variables)), model, hvd.size()
    )


@variant
def case_local_variable_that_is_not_scaled() -> Outcome:
    model = network(layers=2)
    optimizer = hvd_keras.DistributedOptimizer(SGD(0.1), scale_local_gradients=False)
    for variable in model.layers[0].variables:
        optimizer.register_local_var(variable)
    return after_one_step(lambda gradients, variables: optimizer.apply_gradients(zip(gradients, variables)), model, 1)


@variant
def case_local_source_of_a_tape() -> Outcome:
    model = network(layers=2)

    def tape(recorded):
        distributed = hvd.DistributedGradientTape(recorded)
        for variable in model.layers[0].variables:
            distributed.register_local_source(variable)
        return distributed

    return after_one_step(None, model, hvd.size(), tape)


@variant
def case_local_layer_of_a_partial_tape() -> Outcome:
    model = network(layers=2)
    layers = [model.layers[0]]

    def tape(recorded):
        return hvd.PartialDistributedGradientTape(recorded, local_layers=layers)

    return after_one_step(None, model, hvd.size(), tape)


def after_one_step(apply, model, share, tape=lambda tape: tape) -> Outcome:
    """One step where the first layer is each rank's own: it takes its gradient, divided by `share`."""
    apply = apply or (lambda gradients, variables: SGD(0.1).apply_gradients(zip(gradients, variables)))
    expected = network(layers=2)
    of_batches = []
    for inputs, targets in (joint()[0], own()[0]):
        with tf.GradientTape() as recorded:
            loss = tf.reduce_mean((expected(inputs) - targets) ** 2)
        of_batches.append(recorded.gradient(loss, expected.trainable_variables))
    for index, variable in enumerate(expected.trainable_variables):
        variable.assign_sub(0.1 * (of_batches[1][index] / share if index < 2 else of_batches[0][index]))
    inputs, targets = own()[0]
    with tf.GradientTape() as recorded:
        loss = tf.reduce_mean((model(inputs) - targets) ** 2)
    apply(tape(recorded).gradient(loss, model.trainable_variables), model.trainable_variables)
    assert len(set(hvd.allgather_object(model.get_weights()[2].tobytes()))) == 1
    assert len(set(hvd.allgather_object(model.get_weights()[0].tobytes()))) == hvd.size()
    return Outcome(model.get_weights(), expected.get_weights(), agree=[0])


def case_passes_that_are_averaged_on_fit() -> Outcome:
    optimizer = hvd_keras.DistributedOptimizer(SGD(0.1), backward_passes_per_step=2, average_aggregated_gradients=True)
    return Outcome(fit(optimizer), alone(SGD(0.1), pairs()))


@variant
def case_passes_that_are_summed_on_fit() -> Outcome:
    optimizer = hvd_keras.DistributedOptimizer(SGD(0.05), backward_passes_per_step=2)
    return Outcome(fit(optimizer), alone(SGD(0.1), pairs()))


@variant
def case_passes_on_a_loop() -> Outcome:
    optimizer = hvd.DistributedOptimizer(SGD(0.05, momentum=0.9), backward_passes_per_step=2)
    weights = loop(optimizer)
    assert int(optimizer.iterations) == 4
    return Outcome(weights, alone(Doubling(0.05, momentum=0.9), pairs()))


class Doubling(SGD):
    """As a sum of two passes is twice their mean."""

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(2 * gradient, variable, learning_rate)


@variant
def case_passes_on_a_compiled_loop() -> Outcome:
    optimizer = hvd.DistributedOptimizer(SGD(0.05), backward_passes_per_step=2)
    return Outcome(loop(optimizer, function=tf.function), alone(SGD(0.1), pairs()))


def case_passes_by_compute_gradients() -> Outcome:
    optimizer = hvd.DistributedOptimizer(SGD(0.05), backward_passes_per_step=2)

    def apply(optimizer, gradients, variables):
        optimizer.apply_gradients(zip(optimizer._allreduce(gradients, variables), variables))

    return Outcome(loop(optimizer, apply=apply, function=tf.function), alone(SGD(0.1), pairs()))


def of_words(optimizer, fits: bool) -> list:
    """The weights after a model with an embedding, whose gradient is sparse; with two rows in one batch alike.

    It is fitted on all ranks, or on rank 0 alone trained on their joint batch.
    """
    if not fits and hvd.rank() > 0:
        return []
    keras.utils.set_random_seed(0)
    layers = [keras.Input((2,), dtype="int32"), keras.layers.Embedding(9, 3), keras.layers.Flatten()]
    model = keras.Sequential([*layers, keras.layers.Dense(1)])
    words = np.random.default_rng(0).integers(0, 9, (hvd.size() * BATCH, 2))
    words[:, 1] = words[0, 0]
    targets = words.sum(axis=1, keepdims=True).astype("float32")
    mine = slice(hvd.rank() * BATCH, (hvd.rank() + 1) * BATCH)
    model.compile(optimizer, loss="mse", run_eagerly=not fits)
    if fits:
        model.fit(words[mine], targets[mine], batch_size=BATCH, epochs=3, verbose=0)
    for _ in range(0 if fits else 3):
        model.train_on_batch(words, targets)
    return model.get_weights()


def case_sparse_gradients_on_fit() -> Outcome:
    return Outcome(of_words(hvd.DistributedOptimizer(SGD(0.05)), True), of_words(SGD(0.05), False))


@variant
def case_sparse_as_dense_on_fit() -> Outcome:
    optimizer = hvd.DistributedOptimizer(SGD(0.05), sparse_as_dense=True)
    return Outcome(of_words(optimizer, True), of_words(SGD(0.05), False))
