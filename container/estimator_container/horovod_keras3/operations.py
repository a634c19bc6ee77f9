"""Collective operations: broadcasting, and names that are the same on every rank for the same call.

Horovod brings together what has the same name. By default it makes names out of those of variables and tensors, which
differ where one rank has loaded its model and another has built it: then all would wait for ever. Here names count the
calls, which come in the same order on every rank.
"""

from __future__ import annotations

import itertools
import weakref
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf


class Names:
    """The names of one kind of operation."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._calls: weakref.WeakKeyDictionary[Any, defaultdict[int, Iterator[int]]] = weakref.WeakKeyDictionary()

    def next(self, process_set: int = 0) -> str:
        """A name for a call among the ranks of a process set.

        Operations of one function may run at the same time, so each has its own; outside of functions one waits for
        the other, and a name that returns is one that Horovod remembers.
        """
        if tf.executing_eagerly():
            return f"{self._kind}.{process_set}"
        graph = tf.compat.v1.get_default_graph()
        while hasattr(getattr(graph, "outer_graph", None), "outer_graph"):  # the outermost function
            graph = graph.outer_graph
        calls = self._calls.setdefault(graph, defaultdict(itertools.count))
        return f"{self._kind}.{process_set}.{next(calls[process_set])}"


_numbers: defaultdict[tuple[str, int], Iterator[int]] = defaultdict(itertools.count)


def numbered(kind: str, process_set: int) -> Names:
    """Names of one of several of a kind, by how many others of its process set were used before it."""
    return Names(f"{kind}.{next(_numbers[kind, process_set])}")


_names = Names("broadcast_variables")


def broadcast(variables: list[tf.Variable], root_rank: int, process_set: Any = hvd.global_process_set) -> None:
    """Give variables the values that they have on one rank.

    As a graph, where it is not in one: Horovod then gets all variables at once, not one after the other.
    """
    (_broadcast if tf.inside_function() else _broadcast_as_graph)(variables, root_rank, process_set)


def _broadcast(variables: list[tf.Variable], root_rank: int, process_set: Any) -> None:
    name = _names.next(process_set.process_set_id)
    for index, variable in enumerate(variables):
        value = hvd.broadcast(
            variable, root_rank, name=f"{name}.{index}", ignore_name_scope=True, process_set=process_set
        )
        variable.assign(value)


_broadcast_as_graph = tf.function(_broadcast)
