"""What else a step is made of: precision, scaling, accumulation, clipping, averages of weights, schedules, XLA."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import horovod.keras
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import keras
import numpy as np
import tensorflow as tf
from case import FEATURES, Outcome, alone, fit, joint, loop, network, own, pairs, share, variant
from keras.optimizers import SGD, LossScaleOptimizer


@contextlib.contextmanager
def half_precision() -> Iterator[None]:
    keras.config.set_dtype_policy("mixed_float16")
    try:
        yield
    finally:
        keras.config.set_dtype_policy("float32")


def case_mixed_precision_on_fit() -> Outcome:
    with half_precision():
        optimizer = LossScaleOptimizer(hvd_keras.DistributedOptimizer(SGD(0.05)), initial_scale=8.0)
        weights = fit(optimizer, network())
        expected = alone(LossScaleOptimizer(SGD(0.05), initial_scale=8.0), model=network())
    return Outcome(weights, expected, tolerance=2e-2)


@variant
def case_mixed_precision_where_keras_scales_the_loss() -> Outcome:
    """With its scale of 32,768 a rank's gradient may be infinite where that of the joint batch is not."""
    with half_precision():
        model = network()
        weights = fit(hvd_keras.DistributedOptimizer(SGD(0.05)), model)
    assert isinstance(model.optimizer, LossScaleOptimizer)
    assert len(set(hvd.allgather_object(float(model.optimizer.dynamic_scale)))) == 1
    return Outcome(weights, weights)


def after_an_infinite_gradient(optimizer: keras.optimizers.Optimizer) -> Outcome:
    """One rank alone has it: all are to skip the step, and to take the next one."""
    model = network()
    expected = model.get_weights()
    for infinite in (True, False):
        wrong = np.inf if infinite and hvd.rank() == 1 else 0.0
        gradients = [tf.ones(variable.shape) * 2.0**10 + wrong for variable in model.trainable_variables]
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    own_scale = float(optimizer.dynamic_scale)
    assert own_scale == 2.0**9, own_scale
    return Outcome(model.get_weights(), [weight - 0.1 * 2 for weight in expected])


def case_loss_scale_around_a_distributed_optimizer() -> Outcome:
    return after_an_infinite_gradient(LossScaleOptimizer(hvd.DistributedOptimizer(SGD(0.1)), initial_scale=2.0**10))


def case_loss_scale_in_a_distributed_optimizer() -> Outcome:
    return after_an_infinite_gradient(hvd.DistributedOptimizer(LossScaleOptimizer(SGD(0.1), initial_scale=2.0**10)))


@variant
def case_loss_scale_around_several_passes() -> Outcome:
    inner = hvd.DistributedOptimizer(SGD(0.05), backward_passes_per_step=2)
    optimizer = LossScaleOptimizer(inner, initial_scale=4.0)

    def apply(optimizer, gradients, variables):
        optimizer.apply_gradients(zip([4.0 * gradient for gradient in gradients], variables))

    weights = loop(optimizer, apply=apply, function=tf.function)
    assert int(inner.iterations) == 4 and int(optimizer.step_counter) == 2
    return Outcome(weights, alone(SGD(0.1), pairs()))


@variant
def case_loss_scale_factor_on_fit() -> Outcome:
    return Outcome(fit(hvd.DistributedOptimizer(SGD(0.1, loss_scale_factor=8.0))), alone(SGD(0.1)))


def case_gradient_accumulation_steps_on_fit() -> Outcome:
    optimizer = hvd_keras.DistributedOptimizer(SGD(0.1, gradient_accumulation_steps=2))
    return Outcome(fit(optimizer), alone(SGD(0.1), pairs()))


@variant
def case_clipnorm_on_fit() -> Outcome:
    return Outcome(fit(hvd.DistributedOptimizer(SGD(0.1, clipnorm=0.5))), alone(SGD(0.1, clipnorm=0.5)))


@variant
def case_global_clipnorm_on_a_loop() -> Outcome:
    return Outcome(loop(hvd.DistributedOptimizer(SGD(0.1, global_clipnorm=0.5))), alone(SGD(0.1, global_clipnorm=0.5)))


@variant
def case_clipvalue_on_a_loop() -> Outcome:
    return Outcome(loop(hvd.DistributedOptimizer(SGD(0.1, clipvalue=0.2))), alone(SGD(0.1, clipvalue=0.2)))


@variant
def case_moving_average_of_weights_on_fit() -> Outcome:
    given = {"use_ema": True, "ema_momentum": 0.5}
    return Outcome(fit(hvd.DistributedOptimizer(SGD(0.1, **given))), alone(SGD(0.1, **given)))


@variant
def case_schedule_on_fit() -> Outcome:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    return Outcome(fit(hvd.DistributedOptimizer(SGD(schedule))), alone(SGD(schedule)))


@variant
def case_weight_decay_on_a_loop() -> Outcome:
    return Outcome(loop(hvd.DistributedOptimizer(SGD(0.1, weight_decay=0.1))), alone(SGD(0.1, weight_decay=0.1)))


@variant
def case_adam_on_fit() -> Outcome:
    """A sum in another order may turn a sign where a gradient is all but zero."""
    weights = fit(hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)))
    return Outcome(weights, alone(keras.optimizers.Adam(0.01)), tolerance=1e-4)


@variant
def case_steps_per_execution_on_fit() -> Outcome:
    return Outcome(fit(hvd.DistributedOptimizer(SGD(0.1)), steps_per_execution=2), alone(SGD(0.1)))


def case_run_eagerly_on_fit() -> Outcome:
    return Outcome(fit(hvd.DistributedOptimizer(SGD(0.1)), run_eagerly=True), alone(SGD(0.1)))


def case_jit_compile_is_refused_on_fit() -> Outcome:
    for callbacks in ([hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)], []):
        try:
            fit(hvd.DistributedOptimizer(SGD(0.1)), callbacks=callbacks, jit_compile=True)
        except ValueError as error:
            assert "pass jit_compile=False" in str(error), error
        else:
            raise AssertionError("it was not refused")
    return Outcome([], [])


@variant
def case_jit_compile_is_refused_on_a_loop() -> Outcome:
    try:
        loop(hvd.DistributedOptimizer(SGD(0.1)), function=tf.function(jit_compile=True))
    except ValueError as error:
        assert "pass jit_compile=False" in str(error), error
    else:
        raise AssertionError("it was not refused")
    return Outcome([], [])


def case_jit_compile_that_is_left_open_is_off() -> Outcome:
    model = network()
    model.compile(hvd.DistributedOptimizer(SGD(0.1)), loss="mse")
    assert not model._resolve_auto_jit_compile()
    return Outcome([], [])


def case_two_optimizers_in_one_step() -> Outcome:
    model, expected = network(layers=2), network(layers=2)

    @tf.function
    def step(inputs, targets):
        for layer, optimizer in zip(model.layers, optimizers):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(inputs) - targets) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables))

    optimizers = [hvd.DistributedOptimizer(SGD(0.1)) for _ in model.layers]
    for inputs, targets in own():
        step(tf.constant(inputs), tf.constant(targets))
    for inputs, targets in joint():
        for layer in expected.layers:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((expected(inputs) - targets) ** 2)
            SGD(0.1).apply_gradients(zip(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables))
    return Outcome(model.get_weights(), expected.get_weights())


def case_gradients_of_two_types() -> Outcome:
    def model():
        keras.utils.set_random_seed(0)
        wide = keras.layers.Dense(2, dtype="float64")
        return keras.Sequential([keras.Input((FEATURES,)), wide, keras.layers.Dense(1, dtype="float32")])

    return Outcome(fit(hvd.DistributedOptimizer(SGD(0.05)), model()), alone(SGD(0.05), model=model()))


@variant
def case_variable_without_a_gradient() -> Outcome:
    model, spare = network(), keras.Variable([1.0])

    def apply(optimizer, gradients, variables):
        optimizer.apply_gradients([(None, spare), *zip(gradients, variables)])

    return Outcome(loop(horovod.keras.DistributedOptimizer(SGD(0.1)), model, apply=apply), alone(SGD(0.1)))


def case_variables_of_tensorflow() -> Outcome:
    weight = tf.Variable([[0.0]] * FEATURES)
    optimizer = hvd.DistributedOptimizer(SGD(0.1))
    inputs, targets = share(hvd.rank())
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((inputs @ weight - targets) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, [weight]), [weight]))
    shares = [share(rank) for rank in range(hvd.size())]
    there = -0.1 * np.mean([2 * x.T @ (x @ np.zeros((FEATURES, 1)) - y) / len(x) for x, y in shares], axis=0)
    return Outcome([weight.numpy()], [there])
