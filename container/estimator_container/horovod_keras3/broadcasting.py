"""Giving variables the values that they have on one rank."""

from __future__ import annotations

from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf

from .operations import Names

_names = Names("broadcast_variables")


def broadcast(variables: list[tf.Variable], root_rank: int, process_set: Any = hvd.global_process_set) -> None:
    """As a graph, where it is not in one: Horovod then gets all variables at once, not one after the other."""
    (_broadcast if tf.inside_function() else _broadcast_as_graph)(variables, root_rank, process_set)


def _broadcast(variables: list[tf.Variable], root_rank: int, process_set: Any) -> None:
    name = _names.next(process_set.process_set_id)
    for index, variable in enumerate(variables):
        value = hvd.broadcast(
            variable, root_rank, name=f"{name}.{index}", ignore_name_scope=True, process_set=process_set
        )
        variable.assign(value)


_broadcast_as_graph = tf.function(_broadcast)
