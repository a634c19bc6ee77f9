"""Batches as arrays of NumPy."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np


def stack(samples: Sequence[Any]) -> Any:  # noqa: ANN401 - arrays in the form that the samples have
    """For `collate=stack`: one array for each field of the samples, which are dicts, tuples, arrays or numbers.

    Text and bytes stay lists.

    >>> stack([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': array([1., 2.]), 'name': ['a', 'b']}
    """
    first = samples[0]
    if isinstance(first, dict):
        return {name: stack([each[name] for each in samples]) for name in first}
    if isinstance(first, tuple):
        return tuple(stack(column) for column in zip(*samples))
    if isinstance(first, (str, bytes)):
        return list(samples)
    return np.stack([np.asarray(each) for each in samples])


def array_of(content: bytes) -> Any:  # noqa: ANN401 - an array
    """What a field `npy` of a tar shard holds; nothing in it is executed."""
    return np.load(io.BytesIO(content), allow_pickle=False)
