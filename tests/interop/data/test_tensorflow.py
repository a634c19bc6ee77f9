"""`Dataset` behind `tf.data` and Keras, and shards of TFRecords and Parquet, in a process of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

KERAS = """
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from estimator_container.data import Dataset
from estimator_container.data.for_numpy import stack
from estimator_container.data.for_tensorflow import CountBatches, tf_dataset

folder = Path(sys.argv[1])
np.save(folder / "0.npy", np.arange(5.0))
np.save(folder / "1.npy", np.arange(5.0, 23.0))
seen = []


class Seeing(keras.Model):
    def train_step(self, numbers):
        seen.extend(numbers.numpy().tolist())
        return {"loss": tf.constant(0.0)}


class Leaving(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 2:
            raise KeyboardInterrupt


def fit(state, *callbacks):
    data = Dataset(str(folder), batch_size=4, seed=1, collate=stack)
    if state is not None:
        data.load_state_dict(state)
    batches = tf_dataset(data, tf.TensorSpec((None,), tf.float64)).prefetch(8)
    model = Seeing()
    model.compile(run_eagerly=True)
    try:
        for epoch in data.epochs(3):
            counting = [CountBatches(data), *callbacks]
            model.fit(batches, initial_epoch=epoch, epochs=epoch + 1, verbose=0, callbacks=counting)
    except KeyboardInterrupt:
        pass
    return data


state = fit(None, Leaving()).state_dict()
assert (state["epoch"], state["step"], len(seen)) == (0, 3, 11), (state, seen)
assert fit(state).epoch == 3
assert len(seen) == 69, len(seen)
for epoch in range(3):
    assert sorted(seen[23 * epoch : 23 * epoch + 23]) == list(range(23)), seen

data = Dataset(str(folder), batch_size=4, seed=1, collate=stack)
mine = []
for _ in data.epochs(1):
    for batch in data.counted(tf_dataset(data, tf.TensorSpec((None,), tf.float64)).prefetch(8)):
        mine.extend(batch.numpy().tolist())
        if len(mine) == 7:
            assert data.state_dict()["step"] == 2
assert mine == seen[:23]
"""
TFRECORDS = """
import sys
from pathlib import Path

import tensorflow as tf
from estimator_container.data import DataError, Dataset

folder = Path(sys.argv[1])
for shard, records in enumerate(([b"a", b"b"], [b"c"])):
    with tf.io.TFRecordWriter(str(folder / f"{shard}.tfrecord")) as writer:
        for record in records:
            writer.write(record)
assert [sample for batch in Dataset(str(folder), batch_size=2) for sample in batch] == [b"a", b"b", b"c"]
(folder / "1.tfrecord").write_bytes((folder / "1.tfrecord").read_bytes()[:-2])
try:
    Dataset(str(folder), batch_size=2)
except DataError as error:
    assert "1.tfrecord is not a file of TFRecords" in str(error), error
else:
    raise AssertionError("a record that is not whole was read")
"""


@pytest.mark.long
@pytest.mark.parametrize("script", [KERAS, TFRECORDS], ids=["keras", "tfrecords"])
def test_tensorflow_reads_shards(tmp_path, script):
    (tmp_path / "data").mkdir()
    (tmp_path / "train.py").write_text(script)
    words = [sys.executable, tmp_path / "train.py", tmp_path / "data"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
