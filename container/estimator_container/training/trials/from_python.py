"""What Python gives `tf.data` by `from_generator`, handed over in stacks; and what it takes to make it.

For each element a thread of TensorFlow has to get the interpreter, which the script uses, too. For a small batch that
takes longer than to make it. `fit` of Keras takes a `PyDataset` or a generator that way.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from time import perf_counter, thread_time
from typing import Any, Callable

import numpy as np
import tensorflow as tf
from tensorflow.python.data.util import nest


class Making:
    """What the generators of a process have made so far."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = self.cpu = 0.0
        self.bytes = 0

    def of(self, generator: Callable[..., Any], signature: Any) -> Callable[..., Iterator[Any]]:
        """The same generator, which is watched."""

        def watched(*args: Any) -> Iterator[Any]:
            elements = iter(generator(*args))
            while True:
                began, cpu = perf_counter(), thread_time()
                try:
                    element = next(elements)
                except StopIteration:
                    return
                self.seconds += perf_counter() - began
                self.cpu += thread_time() - cpu
                self.count += 1
                self.bytes += sum(array.nbytes for array in _arrays(element, signature))
                yield element

        return watched


def measured(dataset: Any) -> Making:
    """Have `from_generator` of a class of datasets of TensorFlow measure what its generators do."""
    making = Making()

    def from_generator(stock: Any, generator: Any, signature: Any, **others: Any) -> Any:
        return stock(making.of(generator, signature), output_signature=signature, **others)

    _replace(dataset, from_generator)
    return making


def in_stacks(dataset: Any, size: int) -> None:
    """Have `from_generator` of a class of datasets take up to so many elements at once from Python.

    They are the same, in the same order; while those of one stack are used the next is made.
    """

    def from_generator(stock: Any, generator: Any, signature: Any, **others: Any) -> Any:
        stacked = nest.map_structure(lambda spec: tf.TensorSpec([None, *spec.shape], spec.dtype), signature)
        stacks = functools.partial(_stacks, generator, signature, size)
        return stock(stacks, output_signature=stacked, **others).prefetch(1).unbatch()

    _replace(dataset, from_generator)


def _replace(dataset: Any, by: Callable[..., Any]) -> None:
    """Call this where elements are tensors whose rank is known, with the function that it replaces."""
    stock = dataset.from_generator

    @functools.wraps(stock)
    def from_generator(generator: Any, *args: Any, output_signature: Any = None, **others: Any) -> Any:
        specs = nest.flatten(output_signature)
        if args or not all(isinstance(spec, tf.TensorSpec) and spec.shape.rank is not None for spec in specs):
            return stock(generator, *args, output_signature=output_signature, **others)
        return by(stock, generator, output_signature, **others)

    dataset.from_generator = staticmethod(from_generator)


def _stacks(generator: Callable[..., Any], signature: Any, size: int, *args: Any) -> Iterator[Any]:
    """Of elements that follow each other and are of one shape up to so many in one."""
    stack, filled = list[Any](), 0
    for element in generator(*args):
        arrays = _arrays(element, signature)
        if filled and [array.shape for array in arrays] != [each.shape[1:] for each in stack]:
            yield _first(filled, stack, signature)
            filled = 0
        if not filled:
            stack = [np.empty((size, *array.shape), array.dtype) for array in arrays]
        for each, array in zip(stack, arrays):
            each[filled] = array
        filled += 1
        if filled == size:
            yield _first(filled, stack, signature)
            filled = 0
    if filled:
        yield _first(filled, stack, signature)


def _first(count: int, stack: Sequence[Any], signature: Any) -> Any:
    return nest.pack_sequence_as(signature, [each[:count] for each in stack])


def _arrays(element: Any, signature: Any) -> list[Any]:
    values = nest.flatten_up_to(signature, element)
    return [np.asarray(value, spec.dtype.as_numpy_dtype) for value, spec in zip(values, nest.flatten(signature))]
