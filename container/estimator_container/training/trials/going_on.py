"""One iterator for all epochs of `fit`, which takes a new one of `tf.data` in each of them, and for each validation.

Such an iterator has its graph rewritten and its functions made anew, which is longer than the steps of a short epoch.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

_ITERATOR, _IS_AT_BEGINNING = "_estimator_iterator", "_estimator_is_at_beginning"
"""Where an iterator over epochs has the one of `tf.data`, and whether an epoch of that has ended and none begun."""


def over_epochs(epochs: Any) -> None:
    """Have a class of iterators over epochs of Keras go on with the iterator of `tf.data` that has given whole ones.

    What is read is the same: its dataset is repeated, which begins at the first step of an epoch. Batches of arrays
    that are alike each time, as those to validate on, are kept.
    """
    stock = epochs._get_iterator

    @functools.wraps(stock)
    def _get_iterator(self: Any) -> Any:
        dataset = stock(self)
        if not _can_go_on(self, dataset):
            return dataset
        known = vars(self)
        is_over = self._steps_seen >= self.data_adapter.num_batches
        if not (is_over or known.get(_IS_AT_BEGINNING)):
            same = getattr(self.data_adapter, "_shuffle", True) is False  # of arrays alone it says so
            known[_ITERATOR] = iter(_repeated(dataset.cache() if same else dataset))
        known[_IS_AT_BEGINNING] = is_over  # Keras asks when an epoch is over, and again when the next one begins
        return known[_ITERATOR]

    epochs._get_iterator = _get_iterator


def _can_go_on(epochs: Any, dataset: Any) -> bool:
    """Whether an epoch takes as many batches as it has, one by one; threads of Keras's own begin with each epoch."""
    adapter = epochs.data_adapter
    takes_all = bool(adapter.num_batches) and epochs.steps_per_epoch is None and epochs.steps_per_execution == 1
    return takes_all and isinstance(dataset, tf.data.Dataset) and getattr(adapter, "enqueuer", None) is None


def _repeated(dataset: Any) -> Any:
    """TensorFlow would have it read ahead by itself: batches of the next epoch, before Keras says that one is over."""
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    return dataset.repeat().with_options(options)
