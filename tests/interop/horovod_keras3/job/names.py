"""Each of Horovod's names by itself, on `fit` and on a loop of one's own."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import horovod.keras
import horovod.tensorflow as hvd
import horovod.tensorflow.keras
import keras
import numpy as np
import tensorflow as tf
from case import FEATURES, Outcome, alone, fit, loop, network, own, share, variant
from estimator_container import keras_horovod
from keras.optimizers import SGD
from tensorflow.python.autograph.core.ag_ctx import Status, control_status_ctx


def case_optimizer_of_horovod_keras_on_fit() -> Outcome:
    return Outcome(fit(horovod.keras.DistributedOptimizer(SGD(0.1))), alone(SGD(0.1)))


@variant
def case_optimizer_of_horovod_tensorflow_keras_on_fit() -> Outcome:
    optimizer = horovod.tensorflow.keras.DistributedOptimizer(SGD(0.1, momentum=0.9))
    return Outcome(fit(optimizer, experimental_run_tf_function=False), alone(SGD(0.1, momentum=0.9)))


@variant
def case_optimizer_of_horovod_tensorflow_on_fit() -> Outcome:
    return Outcome(fit(hvd.DistributedOptimizer(SGD(0.1))), alone(SGD(0.1)))


def case_partial_optimizer_without_local_layers_on_fit() -> Outcome:
    return Outcome(fit(horovod.keras.PartialDistributedOptimizer(SGD(0.1))), alone(SGD(0.1)))


def case_optimizer_of_keras_horovod_on_fit() -> Outcome:
    callbacks = [keras_horovod.BroadcastGlobalVariablesCallback(), keras_horovod.MetricAverageCallback()]
    weights = fit(keras_horovod.DistributedOptimizer(SGD(0.1)), network(seed=hvd.rank()), callbacks)
    return Outcome(weights, alone(SGD(0.1)))


@variant
def case_optimizer_on_train_on_batch() -> Outcome:
    model = network()
    model.compile(horovod.keras.DistributedOptimizer(SGD(0.1)), loss="mse")
    for inputs, targets in own():
        model.train_on_batch(inputs, targets)
    return Outcome(model.get_weights(), alone(SGD(0.1)))


def case_optimizer_on_a_loop() -> Outcome:
    return Outcome(loop(horovod.keras.DistributedOptimizer(SGD(0.1))), alone(SGD(0.1)))


@variant
def case_optimizer_on_a_compiled_loop() -> Outcome:
    optimizer = hvd.DistributedOptimizer(SGD(0.1))
    return Outcome(loop(optimizer, function=tf.function), alone(SGD(0.1)))


class Bare(SGD):
    """The least that an optimizer of Keras 3 needs in order to average."""

    def apply(self, grads, trainable_variables=None):
        averaged = [hvd.allreduce(grad, name=f"bare.{number}") for number, grad in enumerate(grads)]
        super().apply(averaged, trainable_variables)


def operations_of_a_step(optimizer) -> Counter:
    """Type -> how many of it a compiled step has."""
    model = network()
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False)
    def step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(inputs) - targets) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    graph = step.get_concrete_function(*(tf.TensorSpec(each.shape) for each in own()[0])).graph
    return Counter(operation.type for operation in graph.get_operations())


STOPWATCH = Counter({"Timestamp": 2, "Sub": 1, "AssignAddVariableOp": 1, "Placeholder": 1})
"""What tells how long a rank communicates: two looks at the clock, and the variable that adds up the difference."""


def case_compiled_step_has_but_a_stopwatch_more_than_a_bare_allreduce() -> Outcome:
    found = operations_of_a_step(hvd.DistributedOptimizer(SGD(0.1, momentum=0.9)))
    assert found["HorovodAllreduce"] == 2, found
    bare = operations_of_a_step(Bare(0.1, momentum=0.9))
    assert (found - bare, bare - found) == (STOPWATCH, Counter()), (found - bare, bare - found)
    return Outcome([], [])


@variant
def case_optimizer_on_a_loop_with_apply() -> Outcome:
    def apply(optimizer, grads, variables):
        optimizer.build(variables)
        optimizer.apply(grads)

    return Outcome(loop(hvd.DistributedOptimizer(SGD(0.1)), apply=apply), alone(SGD(0.1)))


@variant
def case_optimizer_on_a_loop_with_minimize() -> Outcome:
    model, optimizer = network(), hvd.DistributedOptimizer(SGD(0.1))
    for inputs, targets in own():
        optimizer.minimize(lambda x=inputs, y=targets: tf.reduce_mean((model(x) - y) ** 2), model.trainable_variables)
    return Outcome(model.get_weights(), alone(SGD(0.1)))


def case_tape_on_a_loop() -> Outcome:
    return Outcome(loop(SGD(0.1), tape=hvd.DistributedGradientTape), alone(SGD(0.1)))


def case_tape_on_a_compiled_loop() -> Outcome:
    return Outcome(loop(SGD(0.1), tape=hvd.DistributedGradientTape, function=tf.function), alone(SGD(0.1)))


class Watched(hvd.Compression.none):
    """Notes whether AutoGraph translates what it is called from, which takes seconds of the first trace of a rank."""

    seen: ClassVar[set] = set()

    @classmethod
    def compress(cls, tensor):
        cls.seen.add(control_status_ctx().status)
        return tensor, None


def case_tape_is_not_translated_by_autograph() -> Outcome:
    def tape(recorded):
        return hvd.DistributedGradientTape(recorded, compression=Watched)

    Watched.seen.clear()
    weights = loop(SGD(0.1), tape=tape, function=tf.function)
    assert Watched.seen == {Status.DISABLED}, Watched.seen
    return Outcome(weights, alone(SGD(0.1)))


@variant
def case_optimizer_is_not_translated_by_autograph() -> Outcome:
    def apply(optimizer, grads, variables):
        optimizer.apply_gradients(zip(optimizer._allreduce(grads, variables), variables))

    Watched.seen.clear()
    optimizer = hvd.DistributedOptimizer(SGD(0.1), compression=Watched)
    weights = loop(optimizer, function=tf.function, apply=apply)
    assert Watched.seen == {Status.DISABLED}, Watched.seen
    return Outcome(weights, alone(SGD(0.1)))


def case_tape_in_the_train_step_of_a_model_on_fit() -> Outcome:
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            keras.utils.set_random_seed(0)
            self.only = keras.layers.Dense(1)
            self.build((None, FEATURES))

        def build(self, shape):
            self.only.build(shape)
            self.built = True

        def call(self, inputs):
            return self.only(inputs)

        def train_step(self, data):
            inputs, targets = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=targets, y_pred=self(inputs, training=True))
            gradients = hvd.DistributedGradientTape(tape).gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    start = Model()
    expected = network()
    expected.set_weights(start.get_weights())
    return Outcome(fit(SGD(0.1), start), alone(SGD(0.1), model=expected))


@variant
def case_tape_and_optimizer_reduce_once() -> Outcome:
    """A sum of sums would be too much by as many times as there are ranks."""

    def tape(recorded):
        return hvd.DistributedGradientTape(recorded, op=hvd.Sum)

    weights = loop(hvd.DistributedOptimizer(SGD(0.01), op=hvd.Sum), tape=tape, function=tf.function)
    return Outcome(weights, alone(SGD(0.01 * hvd.size())))


def case_sync_batch_normalization_on_fit() -> Outcome:
    def model(layer):
        keras.utils.set_random_seed(0)
        return keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(4), layer, keras.layers.Dense(1)])

    weights = fit(hvd.DistributedOptimizer(SGD(0.05)), model(hvd.SyncBatchNormalization()))
    return Outcome(weights, alone(SGD(0.05), model=model(keras.layers.BatchNormalization())), tolerance=2e-5)


@variant
def case_sync_batch_normalization_of_batches_of_different_sizes() -> Outcome:
    inputs = share(hvd.rank())[0][: 2 + hvd.rank()]
    together = [share(rank)[0][: 2 + rank] for rank in range(hvd.size())]
    here, there = hvd.SyncBatchNormalization(), keras.layers.BatchNormalization()
    here(inputs, training=True)
    there(tf.concat(together, axis=0), training=True)
    return Outcome(here.get_weights(), there.get_weights())


@variant
def case_sync_batch_normalization_in_a_tape() -> Outcome:
    def model(layer):
        keras.utils.set_random_seed(0)
        return keras.Sequential([keras.Input((FEATURES,)), layer, keras.layers.Dense(1)])

    weights = loop(SGD(0.05), model(hvd.SyncBatchNormalization()), hvd.DistributedGradientTape)
    return Outcome(weights, alone(SGD(0.05), model=model(keras.layers.BatchNormalization())), tolerance=2e-5)


def case_broadcast_variables_of_a_model_and_an_optimizer() -> Outcome:
    model, optimizer = network(seed=hvd.rank()), SGD(0.1 * (1 + hvd.rank()), momentum=0.9)
    optimizer.build(model.trainable_variables)
    hvd.broadcast_variables(model.variables, root_rank=0)
    hvd.broadcast_variables(optimizer.variables(), root_rank=0, inplace=True)
    assert optimizer.learning_rate.numpy() == tf.constant(0.1).numpy()
    return Outcome(model.get_weights(), network().get_weights())


def case_broadcast_variables_in_a_function() -> Outcome:
    model = network(seed=hvd.rank())

    @tf.function
    def broadcast():
        hvd.broadcast_variables(model.variables, root_rank=0)

    broadcast()
    return Outcome(model.get_weights(), network().get_weights())


def case_objects_are_broadcast_and_gathered() -> Outcome:
    assert hvd.broadcast_object({"rank": hvd.rank()}, root_rank=2) == {"rank": 2}
    assert hvd.allgather_object([hvd.rank()]) == [[rank] for rank in range(hvd.size())]
    return Outcome([], [])


def case_reductions_of_variables_of_keras() -> Outcome:
    variable = keras.Variable([float(hvd.rank())])
    found = [hvd.allreduce(variable), hvd.allreduce(variable, op=hvd.Sum), hvd.broadcast(variable, 2)]
    total = sum(range(hvd.size()))
    return Outcome([each.numpy() for each in found], [[total / hvd.size()], [total], [2.0]])


def case_functions_of_horovod_keras() -> Outcome:
    found = [horovod.keras.allreduce([float(hvd.rank())]), horovod.keras.broadcast([float(hvd.rank())], 2)]
    gathered = horovod.tensorflow.keras.allgather([float(hvd.rank())])
    ranks = range(hvd.size())
    return Outcome([each.numpy() for each in (*found, gathered)], [[sum(ranks) / hvd.size()], [2.0], [*ranks]])


def case_sessions_of_tensorflow_1() -> Outcome:
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", initializer=[[float(hvd.rank())]] * FEATURES)
        inputs, targets = v1.placeholder("float32", [None, FEATURES]), v1.placeholder("float32", [None, 1])
        loss = tf.reduce_mean((inputs @ weight - targets) ** 2)
        train = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1)).minimize(loss)
        with v1.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(1)]) as session:
            for one, other in own():
                session.run(train, {inputs: one, targets: other})
            result = session.run(weight)
    model = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(1, use_bias=False)])
    model.set_weights([np.ones((FEATURES, 1))])
    return Outcome([result], alone(SGD(0.1), model=model))


def case_all_callbacks_are_there() -> Outcome:
    for module in (horovod.keras, horovod.tensorflow.keras):
        assert module.elastic.CommitStateCallback and module.elastic.UpdateBatchStateCallback
        assert module.elastic.UpdateEpochStateCallback and module.callbacks.BestModelCheckpoint
    return Outcome([], [])


def case_tape_and_broadcast_where_models_have_other_names() -> Outcome:
    """Keras counts the models of a process, and one rank may have made more of them."""
    for _ in range(hvd.rank()):
        network()
    model = network(seed=hvd.rank())
    hvd.broadcast_variables(model.variables, root_rank=0)
    return Outcome(loop(SGD(0.1), model, hvd.DistributedGradientTape, tf.function), alone(SGD(0.1)))
