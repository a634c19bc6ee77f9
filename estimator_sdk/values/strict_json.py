"""JSON that every reader takes: Python's own has NaN and Infinity, which JSON has not."""

from __future__ import annotations

import json
from typing import Any


def dumps(document: object, **options: Any) -> str:  # noqa: ANN401 - those of `json.dumps`
    """
    >>> dumps({"loss": [float("nan"), 0.5]})
    '{"loss": [null, 0.5]}'
    """
    try:
        return json.dumps(document, allow_nan=False, **options)
    except ValueError:
        return json.dumps(_finite(document), allow_nan=False, **options)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, (list, tuple)) else value
