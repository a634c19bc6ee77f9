"""What `tf.data` makes of samples, kept in memory as if the script said `cache()`; and what that would take."""

from __future__ import annotations

import functools
import re
from typing import Any

_RANDOM = re.compile(r"Random|StatefulUniform|StatefulStandardNormal|Multinomial|TruncatedNormal|SampleDistorted")
"""In the names of TensorFlow's operations that draw random numbers (`tensorflow/core/ops/random_ops.cc`)."""
_MAPS = ("_MapDataset", "_ParallelMapDataset")
"""What `map` makes (`tensorflow/python/data/ops/map_op.py`)."""
_BARE = "_estimator_bare"
"""Where a dataset that is kept has the one that would make it again."""


def mapped_once(dataset: Any) -> None:
    """Have `map` of a class of datasets of TensorFlow keep what it makes, up to the first call that is random.

    Of several that follow each other the last one keeps it, so nothing is kept twice.
    """
    stock = dataset.map

    @functools.wraps(stock)
    def map(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = stock(vars(self).get(_BARE, self), *args, **kwargs)
        if is_random(made):
            return stock(self, *args, **kwargs)
        kept = made.cache()
        vars(kept)[_BARE] = made
        return kept

    dataset.map = map


def is_random(dataset: Any) -> bool:
    """Whether what a dataset maps with draws random numbers; what it calls in Python cannot be seen."""
    for function in dataset._functions():
        definition = function.function.graph.as_graph_def()
        bodies = [definition.node, *(each.node_def for each in definition.library.function)]
        if any(_RANDOM.search(node.op) for nodes in bodies for node in nodes):
            return True
    return False


def size_of(dataset: Any) -> dict[str, int]:
    """How many batches a pass of a dataset has, and about how many bytes these are; empty if that is not known.

    One batch is made for it. Nothing is to be gained by keeping it where nothing is mapped.
    """
    whole = dataset
    while int(whole.cardinality()) < 0 and len(whole._inputs()) == 1:
        whole = whole._inputs()[0]  # what it repeats
    count = int(whole.cardinality())
    if count <= 0 or not _maps(whole):
        return {}
    import tensorflow as tf

    first: list[Any] = next(iter(whole.take(1)), [])
    tensors = tf.nest.flatten(first, expand_composites=True)
    return {"batches": count, "bytes": count * sum(each.numpy().nbytes for each in tensors)}


def waits_in_turn(dataset: Any) -> bool:
    """Whether it makes something while nothing else goes on: maps with one call at a time, or reads nothing ahead."""
    while type(dataset).__name__ == "_OptionsDataset":
        (dataset,) = dataset._inputs()
    return type(dataset).__name__ != "_PrefetchDataset" or _maps_in_turn(dataset)


def _maps_in_turn(dataset: Any) -> bool:
    return type(dataset).__name__ == "_MapDataset" or any(map(_maps_in_turn, dataset._inputs()))


def _maps(dataset: Any) -> bool:
    """Whether it, or what it is made of, maps without random numbers."""
    here = type(dataset).__name__ in _MAPS and not is_random(dataset)
    return here or any(map(_maps, dataset._inputs()))
