"""Batch normalization with the moments of the batches of all ranks."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import keras
import tensorflow as tf

from .operations import Names

_names = Names("sync_batch_normalization")


def sync_batch_normalization(hvd: ModuleType) -> type[Any]:
    """`hvd.SyncBatchNormalization` for Keras 3, which computes moments by another method than Keras 2."""

    class SyncBatchNormalization(keras.layers.BatchNormalization):  # type: ignore[misc]
        """Normalizes by the mean and variance over all ranks' batches, which may differ in size."""

        def __init__(self, fused: bool | None = False, **kwargs: Any) -> None:
            if fused is not False:
                raise ValueError("SyncBatchNormalization does not support fused=True.")
            kwargs["name"] = kwargs.get("name") or "sync_batch_normalization"
            super().__init__(**kwargs)

        def _moments(self, inputs: Any, mask: Any) -> tuple[Any, Any]:
            mean, variance = super()._moments(inputs, mask)
            if hvd.size() == 1:
                return mean, variance
            weight = _number_of_samples(inputs, mask, self._reduction_axes, mean.dtype)
            here = tf.stack([mean * weight, (variance + tf.square(mean)) * weight, tf.ones_like(mean) * weight])
            sums = _sum(hvd, here)
            mean = sums[0] / sums[2]
            return mean, sums[1] / sums[2] - tf.square(mean)

    # A saved model names the layer by its place.
    SyncBatchNormalization.__module__ = "horovod.tensorflow.sync_batch_norm"
    SyncBatchNormalization.__qualname__ = "SyncBatchNormalization"
    return SyncBatchNormalization


def _sum(hvd: ModuleType, here: Any) -> Any:
    name = _names.next()

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def summed(values: Any) -> tuple[Any, Any]:
        def gradient(upstream: Any) -> Any:
            return hvd.allreduce(upstream, op=hvd.Sum, name=f"{name}.gradient", ignore_name_scope=True)

        return hvd.allreduce(values, op=hvd.Sum, name=name, ignore_name_scope=True), gradient

    return summed(here)


def _number_of_samples(inputs: Any, mask: Any, axes: list[int], dtype: Any) -> Any:
    """How many values each mean is of."""
    shape = tf.shape(inputs)
    if mask is None:
        return tf.cast(tf.reduce_prod(tf.gather(shape, axes)), dtype)
    return tf.reduce_sum(tf.cast(mask, dtype))
