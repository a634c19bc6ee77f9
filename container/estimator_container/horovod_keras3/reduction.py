"""Bringing gradients together over the ranks, as the arguments of Horovod's `DistributedOptimizer` say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Union

import horovod.tensorflow as hvd
import keras
import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from .operations import Names, numbered

Gradient = Union[tf.Tensor, tf.IndexedSlices]
Gradients = list[Union[tf.Tensor, tf.IndexedSlices, None]]

_MARK = "_is_reduced_over_ranks"


@dataclass(frozen=True)
class ReductionSettings:
    """The arguments of `DistributedOptimizer` that say how gradients are reduced, under their own names."""

    op: int = hvd.Average
    compression: type[hvd.compression.Compressor] = hvd.Compression.none
    sparse_as_dense: bool = False
    gradient_predivide_factor: float = 1.0
    groups: int | list[list[Any]] | None = None
    process_set: hvd.ProcessSet = hvd.global_process_set
    scale_local_gradients: bool = True
    device_dense: str = ""
    device_sparse: str = ""
    name: str = "gradients"
    backward_passes_per_step: int = 1
    average_aggregated_gradients: bool = False


class Reduction:
    """What one optimizer does to its gradients before it applies them, or a tape before it gives them."""

    def __init__(self, settings: ReductionSettings, names: Names | None = None) -> None:
        self.settings = settings
        self.local: set[Any] = set()
        """References to the variables whose gradients stay this rank's own."""
        self._names = names

    def reduced(self, gradients: Sequence[Gradient | None], variables: Sequence[Any]) -> Gradients:
        """The gradients, reduced; a variable without one keeps its None, and what is reduced already is left so."""
        result: Gradients = list(gradients)
        todo = [index for index, gradient in enumerate(gradients) if gradient is not None and not is_reduced(gradient)]
        of_ranks = [index for index in todo if reference(variables[index]) not in self.local]
        if of_ranks and not self._is_alone():
            _refuse_xla()
            name = self._operation()
            for group in self._groups(of_ranks, result, variables):
                first, *_ = group
                self._reduce_group(group, result, f"{name}.{first}")
            mark(result[index] for index in of_ranks)
        if len(of_ranks) < len(todo) and self.settings.scale_local_gradients:
            for index in set(todo).difference(of_ranks):
                result[index] = _scaled(result[index], self._size())
                mark([result[index]])
        return result

    def _is_alone(self) -> bool:
        """With nobody to reduce with: in a world of one, or out of the process set."""
        ranks = self.settings.process_set
        return not _is_elastic() and (not ranks.included() or ranks.size() == 1)

    def _size(self) -> Any:
        ranks = self.settings.process_set
        return hvd.size_op(process_set_id=ranks.process_set_id) if _is_elastic() else ranks.size()

    def _operation(self) -> str:
        ranks = self.settings.process_set.process_set_id
        self._names = self._names or numbered(self.settings.name, ranks)
        return self._names.next(ranks)

    def _groups(self, indexes: list[int], gradients: Gradients, variables: Sequence[Any]) -> Iterable[list[int]]:
        """The indexes of what travels together: of one type, and of one group of `groups`; sparse ones alone."""
        sparse = [index for index in indexes if isinstance(gradients[index], tf.IndexedSlices)]
        if self.settings.sparse_as_dense or self.settings.op == hvd.Adasum:
            for index in sparse:
                gradients[index] = tf.convert_to_tensor(gradients[index])
            sparse = []
        dense = [index for index in indexes if index not in sparse]
        yield from ([index] for index in sparse)
        if self.settings.op == hvd.Adasum:  # Horovod cannot do it in groups
            yield from ([index] for index in dense)
            return
        for group in self._asked_groups(dense, variables):
            for dtype in sorted({gradients[index].dtype.name for index in group}):  # type: ignore[union-attr]
                yield [index for index in group if gradients[index].dtype.name == dtype]  # type: ignore[union-attr]

    def _asked_groups(self, dense: list[int], variables: Sequence[Any]) -> list[list[int]]:
        groups = self.settings.groups
        if groups is None:
            # In a graph each goes as soon as it is there, while others are computed; eagerly each would be waited for.
            return [dense] if tf.executing_eagerly() else [[index] for index in dense]
        if not isinstance(groups, list):
            size, more = divmod(len(dense), groups)
            ends = [number * size + min(number, more) for number in range(groups + 1)]
            return [dense[start:end] for start, end in zip(ends, ends[1:]) if start < end]
        group_of = {reference(variable): number for number, group in enumerate(groups) for variable in group}
        found: dict[Any, list[int]] = {}
        for index in dense:
            key = reference(variables[index])
            found.setdefault(group_of.get(key, key), []).append(index)
        return list(found.values())

    def _reduce_group(self, group: list[int], gradients: Gradients, name: str) -> None:
        settings = self.settings
        gradient = gradients[group[0]]
        if isinstance(gradient, tf.IndexedSlices):
            gradients[group[0]] = self._gathered(gradient, name)
            return
        factor = settings.gradient_predivide_factor if settings.op == hvd.Average else 1.0
        how = {
            "op": settings.op,
            "compression": settings.compression,
            "device_dense": settings.device_dense,
            "prescale_factor": 1.0 / factor,
            "postscale_factor": factor,
            "process_set": settings.process_set,
            "name": name,
            "ignore_name_scope": True,
        }
        tensors = [gradients[index] for index in group]
        reduced = [hvd.allreduce(tensors[0], **how)] if len(tensors) == 1 else hvd.grouped_allreduce(tensors, **how)
        for index, tensor in zip(group, reduced):
            gradients[index] = tensor

    def _gathered(self, gradient: tf.IndexedSlices, name: str) -> tf.IndexedSlices:
        """The rows that any rank has, which is their sum."""
        how = {"process_set": self.settings.process_set, "ignore_name_scope": True}
        with tf.device(self.settings.device_sparse):
            values = hvd.allgather(gradient.values, name=f"{name}.values", **how)
            indices = hvd.allgather(gradient.indices, name=f"{name}.indices", **how)
            if self.settings.op == hvd.Average:
                values /= tf.cast(self._size(), values.dtype)
            return tf.IndexedSlices(values, indices, dense_shape=gradient.dense_shape)


def reference(variable: Any) -> Any:
    """What can be looked up in a set, and is the same for a variable of Keras and the one of TensorFlow in it."""
    return plain(variable).ref()


def plain(variable: Any) -> Any:
    """TensorFlow's variable in one of Keras's; anything else as it is."""
    return variable._value if isinstance(variable, keras.Variable) else variable


def is_reduced(gradient: Gradient) -> bool:
    """Whether it comes from here, or from Horovod's tape."""
    return hasattr(gradient, _MARK)


def mark(gradients: Iterable[Gradient | None]) -> None:
    """Have an optimizer take them as they are: the sum of sums would be too much."""
    for gradient in gradients:
        if gradient is not None:
            setattr(gradient, _MARK, True)


def _scaled(gradient: Any, size: Any) -> Gradient:
    """A rank's own gradient is to weigh as much in a step as its share in an average does."""
    if isinstance(gradient, tf.IndexedSlices):
        values = gradient.values / tf.cast(size, gradient.values.dtype)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return gradient / tf.cast(size, gradient.dtype)


def _is_elastic() -> bool:
    """Whether the size of the world may change, so that no function may know it for good."""
    return bool(int(os.environ.get("HOROVOD_ELASTIC", "0")))


def _refuse_xla() -> None:
    graph = tf.compat.v1.get_default_graph()
    if control_flow_util.GraphOrParentsInXlaContext(graph):
        raise ValueError(
            "This step is compiled with jit_compile on, and XLA cannot compile Horovod's operations: "
            "pass jit_compile=False to model.compile() or tf.function()."
        )
