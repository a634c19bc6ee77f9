"""Hyperparameters: from the strings on disk to values, and from values to command-line arguments.

The rules are those of the `sagemaker-training` package 5.1.4, so a script sees the same arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..runtime.errors import ConfigurationError

RESERVED_PREFIX = "sagemaker_"
RESERVED_NAMES = frozenset({"default_user_module_name", "_tuning_objective_metric"})


def decode(raw: Mapping[str, object]) -> dict[str, Any]:
    """Each string as the JSON value it holds, or as it is where it holds none; other values stay as they are."""
    return {name: _decode_one(value) if isinstance(value, str) else value for name, value in raw.items()}


def _decode_one(text: str) -> Any:  # noqa: ANN401 - a hyperparameter is any JSON value
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def is_reserved(name: str) -> bool:
    """Whether a hyperparameter is meant for the toolkit and not for the script."""
    return name.startswith(RESERVED_PREFIX) or name in RESERVED_NAMES


def to_arguments(hyperparameters: Mapping[str, Any]) -> list[str]:
    """The script's arguments: `--key value` pairs, sorted by key; a key of one letter gets one dash.

    Raises ConfigurationError for text that no argument can hold: a NUL, or half of a surrogate pair.

    >>> to_arguments({"lr": 0.1, "b": True, "name": "a b", "sizes": [1, 2]})
    ['-b', 'True', '--lr', '0.1', '--name', 'a b', '--sizes', '[1, 2]']
    """
    arguments: list[str] = []
    for name in sorted(hyperparameters):
        pair = [f"-{name}" if len(name) == 1 else f"--{name}", _to_text(hyperparameters[name])]
        if not can_be_passed("".join(pair)):
            raise ConfigurationError(
                f"the hyperparameter {name!r} holds a NUL or an unpaired surrogate, which no argument can carry; "
                "pass it as a file in a channel"
            )
        arguments += pair
    return arguments


def can_be_passed(text: str) -> bool:
    """Whether an argument or a variable can hold a text: one without a NUL, or half of a surrogate pair."""
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def _to_text(value: Any) -> str:  # noqa: ANN401 - a hyperparameter is any JSON value
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={value[name]}" for name in sorted(value))
    return str(value)
