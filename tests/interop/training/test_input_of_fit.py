"""Trials that change how TensorFlow takes its input, in a process of their own: it is the same input."""

from __future__ import annotations

import subprocess
import sys

import pytest

STACKS = """
import itertools
import numpy as np, tensorflow as tf
from estimator_container.training.trials import from_python

calls = []


def pairs(count=7):
    for number in itertools.count() if count < 0 else range(count):
        calls.append(number)
        yield np.full((2 if number < 4 else 1, 3), number), {"number": number}


signature = tf.TensorSpec([None, 3], tf.float32), {"number": tf.TensorSpec([], tf.int64)}
stock = tf.data.Dataset.from_generator


def taken(make, **others):
    dataset = make(pairs, output_signature=signature, **others)
    assert dataset.element_spec == signature, dataset.element_spec
    return [(x.tolist(), number["number"].item()) for x, number in dataset.take(10).as_numpy_iterator()]


as_it_is = taken(stock)
from_python.in_stacks(tf.data.Dataset, 3)
in_stacks = tf.data.Dataset.from_generator
assert len(as_it_is) == 7 and taken(in_stacks) == as_it_is
assert taken(in_stacks, args=(4,)) == as_it_is[:4]
assert [number for _, number in taken(in_stacks, args=(-1,))] == list(range(10))
assert list(in_stacks(lambda: iter([1, 2]), tf.int64).as_numpy_iterator()) == [1, 2]
ragged = [tf.ragged.constant([[1], [2, 3]])]
(same,) = in_stacks(lambda: iter(ragged), output_signature=tf.RaggedTensorSpec([None, None], tf.int32))
assert same.to_list() == [[1], [2, 3]]

reused = np.zeros(1)


def reusing():
    for reused[0] in range(5):
        yield reused


one = tf.TensorSpec([1], tf.float64)
assert [each.item() for each in in_stacks(reusing, output_signature=one).as_numpy_iterator()] == [0, 1, 2, 3, 4]

making = from_python.measured(tf.data.Dataset)
assert taken(tf.data.Dataset.from_generator) == as_it_is
assert (making.count, making.bytes) == (7, 11 * 3 * 4 + 7 * 8), vars(making)
assert 0 < making.cpu <= 2 * making.seconds
"""
EPOCHS = """
import os, random, types
import keras, numpy as np, tensorflow as tf
from keras.src.backend.tensorflow import trainer
from estimator_container.contract.names import DOCTOR
from estimator_container.training.boundaries import in_keras, in_tensorflow


class Numbers(keras.utils.PyDataset):
    def __init__(self, **how):
        super().__init__(**how)
        self.epoch = 0

    def __len__(self):
        return 5

    def __getitem__(self, index):
        first = 100 * self.epoch + 10 * (3 * index % 5)
        return np.arange(first, first + (2 if index < 4 else 1), dtype="float32")[:, None], np.zeros(1)

    def on_epoch_end(self):
        self.epoch += 1


class StopsEarly(keras.callbacks.Callback):
    def on_test_batch_end(self, batch, logs=None):
        self.model.stop_evaluating = batch == 1


seen = []


class Model(keras.Model):
    def train_step(self, data):
        tf.py_function(lambda x: seen.append(x.numpy().ravel().tolist()), [data[0]], [])
        return {"seen": tf.constant(0.0)}

    test_step = train_step


def fit(x, *callbacks, **how):
    '''What a model sees in three epochs, and how many iterators it takes for it.'''
    seen.clear()
    random.seed(0)  # by which Keras shuffles batches
    made, stock = [], tf.data.Dataset.__iter__
    tf.data.Dataset.__iter__ = lambda self: made.append(self) or stock(self)
    model = Model()
    model.compile(**how)
    held_out = np.arange(-70, 0, dtype="float32")[:, None], np.zeros(70)
    model.fit(x, validation_data=held_out, epochs=3, verbose=0, callbacks=callbacks)
    tf.data.Dataset.__iter__ = stock
    return list(seen), len(made)


ways = [
    lambda: fit(Numbers()),
    lambda: fit(Numbers(workers=2)),
    lambda: fit(Numbers(), steps_per_execution=2),
    lambda: fit(Numbers(), StopsEarly()),
    lambda: fit(tf.data.Dataset.range(7).batch(2).map(lambda x: (x, x))),
]
epochs, datasets = trainer.TFEpochIterator, tf.data.Dataset
stock = epochs._get_iterator, staticmethod(datasets.from_generator), datasets.__iter__


def in_trial(told, ways):
    os.environ[DOCTOR] = told
    epochs._get_iterator, datasets.from_generator, datasets.__iter__ = stock
    in_keras.watch_epochs(trainer, None)
    in_tensorflow.watch_datasets(types.SimpleNamespace(DatasetV2=datasets), None)
    return [way() for way in ways]


as_they_are, going = in_trial("", ways), in_trial("go-on,stack=64", ways)
assert len(as_they_are[0][0]) == 3 * (5 + 3), as_they_are[0]
for number, ((before, _), (after, _)) in enumerate(zip(as_they_are, going)):
    assert before == after, (number, before, after)
assert as_they_are[0][1] == 12  # two for each epoch and two for each validation
assert [made for _, made in going] == [2, 6 + 1, 12, 1 + 3, 2]

((replayed, made),) = in_trial("replay", ways[:1])
assert (len(replayed), len(set(map(tuple, replayed))), made) == (3 * (5 + 3), 2, 2), (replayed, made)
"""


@pytest.mark.parametrize("program", [STACKS, EPOCHS], ids=["stacks", "epochs"])
def test_what_is_taken_is_the_same(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
