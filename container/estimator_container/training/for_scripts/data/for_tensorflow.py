"""A data set for `tf.data` and Keras."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .dataset import Dataset


def tf_dataset(data: Dataset, output_signature: Any) -> Any:  # noqa: ANN401 - of TensorFlow
    """The batches from the present position to the end of the epoch, as a `tf.data.Dataset`.

    `output_signature` is that of a batch, as `tf.data.Dataset.from_generator` has it. Batches may be mapped and
    prefetched, one for one; iterate over `data.counted(…)`, or give Keras `CountBatches(data)`.
    """
    dataset = tf.data.Dataset.from_generator(data.read, output_signature=output_signature)
    options = tf.data.Options()
    # Its ranks have divided the samples already.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options).prefetch(1)


class CountBatches(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """For `model.fit(dataset, callbacks=[CountBatches(data), …])`: counts a batch when Keras has trained on it.

    Put it before the callbacks that keep checkpoints.
    """

    def __init__(self, data: Dataset) -> None:
        super().__init__()
        self._data = data

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        """Called by Keras."""
        self._data.consumed()
