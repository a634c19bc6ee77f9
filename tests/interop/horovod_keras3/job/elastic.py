"""`hvd.elastic` in a world whose size is fixed."""

from __future__ import annotations

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf
from case import BATCH, Outcome, alone, joint, network, share
from horovod.common.exceptions import HorovodInternalError
from keras.optimizers import SGD


def case_elastic_training_with_its_callbacks() -> Outcome:
    """As Horovod's example for Keras has it; the optimizer is built first, for the state is to have its variables."""
    model = network(seed=hvd.rank())
    model.compile(
        hvd_keras.DistributedOptimizer(SGD(0.1, momentum=0.9)), loss="mse", experimental_run_tf_function=False
    )
    model.optimizer.build(model.trainable_variables)
    state = hvd_keras.elastic.KerasState(model, batch=0, epoch=0)
    epochs = []

    @hvd_keras.elastic.run
    def train(state, word):
        epochs.append(state.epoch)
        callbacks = [
            hvd_keras.elastic.UpdateEpochStateCallback(state),
            hvd_keras.elastic.UpdateBatchStateCallback(state),
            hvd_keras.elastic.CommitStateCallback(state, batches_per_commit=2),
        ]
        given = {"batch_size": BATCH, "shuffle": False, "verbose": 0, "callbacks": callbacks}
        state.model.fit(*share(hvd.rank()), epochs=2 - state.epoch, **given)
        return word

    assert train(state, "done") == "done"
    assert (epochs, state.epoch, state.batch) == ([0], 2, 0)
    weights = model.get_weights()
    model.set_weights([0 * weight for weight in weights])
    state.restore()  # what the last commit kept
    return Outcome(model.get_weights(), alone(SGD(0.1, momentum=0.9), joint() * 2))


def case_elastic_state_of_variables() -> Outcome:
    variable = tf.Variable([0.0, 0.0])
    state = hvd.elastic.TensorFlowState([variable], step=hvd.rank())
    variable.assign([1.0 + hvd.rank(), 2.0])  # as a script that reads a checkpoint on rank 0

    @hvd.elastic.run
    def train(state):
        assert state.step == 0
        variable.assign_add([1.0, 1.0])
        state.commit()
        variable.assign([9.0, 9.0])
        state.restore()

    train(state)
    return Outcome([variable.numpy()], [np.array([2.0, 3.0])])


def case_elastic_training_ends_in_its_first_error() -> Outcome:
    """There is nobody who could make another world; whatever it is, an error is no success."""
    for error in (HorovodInternalError("it failed"), tf.errors.UnknownError(None, None, "it failed")):
        calls = []

        @hvd.elastic.run
        def train(state, error=error, calls=calls):
            calls.append(1)
            raise error

        try:
            train(hvd_keras.elastic.KerasState(network(), SGD(0.1)))
        except type(error):
            assert len(calls) == 1
        else:
            raise AssertionError("it was taken for a success")
    return Outcome([], [])
