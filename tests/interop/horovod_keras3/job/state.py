"""Callbacks, saved models, and what an optimizer is besides its steps."""

from __future__ import annotations

import tempfile
from pathlib import Path

import horovod.keras
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import keras
import numpy as np
from case import STEPS, Outcome, alone, dataset, fit, joint, network, variant
from keras.optimizers import SGD, Adam

callbacks = hvd_keras.callbacks


def case_broadcast_callback_before_the_first_step() -> Outcome:
    optimizer = hvd.DistributedOptimizer(SGD(0.1 if hvd.rank() == 2 else 0.7, momentum=0.9))
    weights = fit(optimizer, network(seed=hvd.rank()), [callbacks.BroadcastGlobalVariablesCallback(2)])
    return Outcome(weights, alone(SGD(0.1, momentum=0.9), model=network(seed=2)))


@variant
def case_broadcast_callback_of_a_model_that_is_not_built() -> Outcome:
    """It has the root's first step, and all others' from then on."""

    def model(seed):
        keras.utils.set_random_seed(seed)
        return keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])

    started = [horovod.keras.callbacks.BroadcastGlobalVariablesCallback(0)]
    weights = fit(hvd.DistributedOptimizer(SGD(0.05)), model(hvd.rank()), started)
    return Outcome(weights, alone(SGD(0.05), model=model(0)))


def case_broadcast_callback_leaves_local_variables() -> Outcome:
    model = network(seed=hvd.rank(), layers=2)
    own = model.layers[0].get_weights()
    local = callbacks.BroadcastGlobalVariablesCallback(0, local_variables=model.layers[0].variables)
    fit(hvd.DistributedOptimizer(SGD(0.0)), model, [local])
    expected = [*own, *network(layers=2).layers[1].get_weights()]
    return Outcome(model.get_weights(), expected, agree=[0])


def case_metric_average_callback() -> Outcome:
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs):
            seen.append(logs["loss"])

    averaged = [callbacks.MetricAverageCallback(), Watch()]
    fit(hvd.DistributedOptimizer(SGD(0.0)), callbacks=averaged)
    model = network()
    model.compile(loss="mse")
    together = [np.concatenate(parts) for parts in zip(*joint())]
    return Outcome([np.array(seen)], [np.array([model.evaluate(*together, verbose=0)])], tolerance=1e-5)


def of_rates(rates: list[float], momentum: float, corrected: bool) -> list[np.ndarray]:
    """The weights where each step has a rate of its own, and momentum follows it in the step where it changes."""
    weights = [weight.astype("float64") for weight in network().get_weights()]
    velocities = [0.0, 0.0]
    before = rates[0]
    for (inputs, targets), rate in zip(joint() * 2, rates, strict=True):
        errors = 2 * (inputs @ weights[0] + weights[1] - targets) / len(inputs)
        gradients = [inputs.T @ errors, errors.sum(axis=0)]
        factor = momentum * (rate / before if corrected else 1.0)
        velocities = [factor * velocity - rate * gradient for velocity, gradient in zip(velocities, gradients)]
        weights = [weight + velocity for weight, velocity in zip(weights, velocities)]
        before = rate
    return weights


@variant
def case_learning_rate_schedule_callback() -> Outcome:
    schedule = callbacks.LearningRateScheduleCallback(0.05, multiplier=0.5, momentum_correction=True)
    optimizer = hvd.DistributedOptimizer(SGD(0.05, momentum=0.9))
    weights = fit(optimizer, callbacks=[schedule], epochs=2)
    assert optimizer.get_config()["momentum"] == 0.9
    return Outcome(weights, of_rates([0.05] * STEPS + [0.025] * STEPS, 0.9, True), tolerance=1e-5)


@variant
def case_learning_rate_schedule_callback_without_correction() -> Outcome:
    schedule = horovod.keras.callbacks.LearningRateScheduleCallback(0.05, multiplier=0.5, momentum_correction=False)
    weights = fit(hvd.DistributedOptimizer(SGD(0.05, momentum=0.9)), callbacks=[schedule], epochs=2)
    return Outcome(weights, of_rates([0.05] * STEPS + [0.025] * STEPS, 0.9, False), tolerance=1e-5)


def case_learning_rate_warmup_callback() -> Outcome:
    warmup = callbacks.LearningRateWarmupCallback(0.08, warmup_epochs=1, verbose=1)
    optimizer = hvd.DistributedOptimizer(SGD(0.08))
    weights = fit(optimizer, callbacks=[warmup], epochs=2)
    size = hvd.size()
    rates = [0.08 / size * ((size - 1) * (step + 1) / STEPS + 1) for step in range(STEPS)] + [0.08] * STEPS
    assert abs(float(optimizer.lr) - 0.08) < 1e-6
    return Outcome(weights, of_rates(rates, 0.0, False), tolerance=1e-5)


@variant
def case_best_model_checkpoint_callback() -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = horovod.keras.callbacks.BestModelCheckpoint(monitor="loss")
        checkpoint.filepath = str(Path(folder) / "best.keras")
        weights = fit(hvd.DistributedOptimizer(SGD(0.01)), callbacks=[checkpoint])
        assert [path.name for path in Path(folder).iterdir()] == ["best.keras"]
        callbacks.BestModelCheckpoint(save_weights_only=True)
        return Outcome(hvd_keras.load_model(checkpoint.filepath).get_weights(), weights)


def saved_and_loaded(name: str, load, optimizer=None) -> Outcome:
    """The second half of the steps after the model was saved and loaded, beside all steps at a stretch."""
    model = network()
    model.compile(optimizer or hvd.DistributedOptimizer(SGD(0.1, momentum=0.9)), loss=keras.losses.MeanSquaredError())
    model.fit(dataset().take(STEPS // 2), verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / name)
        model.save(path)
        if hvd.rank() == 0:
            plain = keras.models.load_model(path, custom_objects={"Own": Own})
            assert type(plain.optimizer).__module__ != "horovod._keras"
        model = load(path)
        assert isinstance(model.optimizer, (SGD, Own)) and int(model.optimizer.iterations) == STEPS // 2
    model.fit(dataset().skip(STEPS // 2), verbose=0)
    assert int(model.optimizer.iterations) == STEPS
    return Outcome(model.get_weights(), alone(SGD(0.1, momentum=0.9)))


class Own(SGD):
    """An optimizer that Keras does not know."""


def case_load_model_of_a_keras_file() -> Outcome:
    return saved_and_loaded("model.keras", hvd_keras.load_model)


@variant
def case_load_model_of_an_h5_file() -> Outcome:
    return saved_and_loaded("model.h5", horovod.keras.load_model)


@variant
def case_load_model_with_custom_optimizers() -> Outcome:
    mine = hvd.DistributedOptimizer(Own(0.1, momentum=0.9))
    return saved_and_loaded("a.keras", lambda path: hvd_keras.load_model(path, custom_optimizers=[Own]), mine)


@variant
def case_load_model_with_a_function_in_the_place_of_a_class() -> Outcome:
    objects = {"Own": lambda **config: hvd.DistributedOptimizer(Own(**config))}
    mine = hvd.DistributedOptimizer(Own(0.1, momentum=0.9))
    return saved_and_loaded("a.keras", lambda path: hvd_keras.load_model(path, custom_objects=objects), mine)


def case_optimizer_of_a_loaded_model_is_wrapped_again() -> Outcome:
    def load(path):
        model = keras.models.load_model(path)
        model.compile(hvd.DistributedOptimizer(hvd.DistributedOptimizer(model.optimizer)), loss="mse")
        return model

    return saved_and_loaded("model.keras", load)


def case_one_rank_loads_and_the_others_build() -> Outcome:
    model = network(seed=hvd.rank())
    model.compile(hvd_keras.DistributedOptimizer(SGD(0.1, momentum=0.9)), loss="mse")
    if hvd.rank() == 0:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model.keras")
            model.save(path)
            model = hvd_keras.load_model(path)
    model.fit(dataset(), verbose=0, callbacks=[callbacks.BroadcastGlobalVariablesCallback(0)])
    return Outcome(model.get_weights(), alone(SGD(0.1, momentum=0.9)))


def case_variables_of_optimizers_are_a_property_and_a_method() -> Outcome:
    for optimizer in (Adam(), hvd.DistributedOptimizer(Adam()), keras.optimizers.LossScaleOptimizer(Adam())):
        assert len(optimizer.variables()) == len(optimizer.variables) >= 2
    return Outcome([], [])


@variant
def case_the_given_optimizer_stays_as_it_is() -> Outcome:
    optimizer = SGD(0.1, momentum=0.9)
    several = [hvd.DistributedOptimizer(optimizer) for _ in range(2)]
    assert several[0] is not several[1] and type(optimizer) is SGD and not optimizer.built
    assert several[0].from_config(several[0].get_config()).get_config() == several[0].get_config()
    for each in several:
        weights = fit(each)
    return Outcome(weights, alone(optimizer))


def case_elastic_state_of_a_model() -> Outcome:
    model = network(seed=hvd.rank())
    optimizer = hvd.DistributedOptimizer(SGD(0.1))
    state = hvd_keras.elastic.KerasState(model, optimizer, epoch=hvd.rank())
    state.sync()
    model.set_weights([0 * weight for weight in model.get_weights()])
    state.restore()
    assert state.epoch == 0
    return Outcome(model.get_weights(), network().get_weights())
