"""Hyperparameters: from the strings on disk to values, and from values to command-line arguments.

The rules are those of the `sagemaker-training` package 5.1.4, so a script sees the same arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..runtime.errors import ConfigurationError
from .names import ARGUMENTS_HYPERPARAMETER, COMMAND_HYPERPARAMETER

OF_OTHER_TOOLKITS = (
    "sagemaker_distributed_dataparallel_enabled",
    "sagemaker_pytorch_ddp_enabled",
    "sagemaker_pytorch_xla_multi_worker_enabled",
)
"""Distributions with runners in `sagemaker-training` 5.1.4 (`smdataparallel.py`, `pytorch_xla.py`), or upon it."""
RESERVED_PREFIX = "sagemaker_"
RESERVED_NAMES = frozenset({"default_user_module_name", "_tuning_objective_metric"})
OWN_PREFIX = "sagemaker_estimator_"
OF_THE_TOOLKIT = frozenset(
    {
        "sagemaker_program",
        "sagemaker_submit_directory",
        "sagemaker_enable_cloudwatch_metrics",
        "sagemaker_container_log_level",
        "sagemaker_job_name",
        "sagemaker_region",
        "sagemaker_s3_output",
    }
)
"""Those that have variables of their own, or are nothing to a script."""


def decode(raw: Mapping[str, str]) -> dict[str, Any]:
    """Each string as the JSON value it holds, or as it is where it holds none."""
    return {name: _decode_one(text) for name, text in raw.items()}


def _decode_one(text: str) -> Any:  # noqa: ANN401 - a hyperparameter is any JSON value
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def is_reserved(name: str) -> bool:
    """Whether a hyperparameter is meant for the toolkit and not for the script."""
    return name.startswith(RESERVED_PREFIX) or name in RESERVED_NAMES


def enables_distribution(name: str) -> bool:
    """Whether a hyperparameter is one that says that the hosts of a group work together, by one way or another."""
    return name.startswith(RESERVED_PREFIX) and name.endswith("_enabled")


def for_the_script(hyperparameters: Mapping[str, Any]) -> dict[str, Any]:
    """The hyperparameters that become arguments: all but the reserved ones."""
    return {name: value for name, value in hyperparameters.items() if not is_reserved(name)}


def for_the_framework(hyperparameters: Mapping[str, Any]) -> dict[str, Any]:
    """The other reserved ones, those of the distributions among them; they become `SM_FRAMEWORK_PARAMS`."""
    return {
        name: value
        for name, value in hyperparameters.items()
        if name.startswith(RESERVED_PREFIX) and not name.startswith(OWN_PREFIX) and name not in OF_THE_TOOLKIT
    }


def script_arguments(hyperparameters: Mapping[str, Any]) -> list[str]:
    """What follows the entry point: the arguments that the job carries as they were written, else `to_arguments`.

    Raises ConfigurationError as that does, for they are variables in any case, and for carried arguments that are not a
    list of strings.

    >>> script_arguments({"lr": 0.1, "sagemaker_estimator_arguments": ["data", "--lr", "0.1", "-v", "-v"]})
    ['data', '--lr', '0.1', '-v', '-v']
    """
    carried = _words(ARGUMENTS_HYPERPARAMETER, hyperparameters)
    made = to_arguments(for_the_script(hyperparameters))
    return made if carried is None else carried


def command(hyperparameters: Mapping[str, Any]) -> list[str] | None:
    """The command that the job runs instead of an entry point; None if it has none.

    Raises ConfigurationError for one that is not a list of strings, or is empty.
    """
    words = _words(COMMAND_HYPERPARAMETER, hyperparameters)
    if words == []:
        raise ConfigurationError(f"{COMMAND_HYPERPARAMETER} is empty; it must name a program and its arguments")
    return words


def _words(name: str, hyperparameters: Mapping[str, Any]) -> list[str] | None:
    words = hyperparameters.get(name)
    if words is None:
        return None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ConfigurationError(f"{name} must be a JSON list of strings, not {words!r}")
    for word in words:
        _check(name, word)
    return words


def to_arguments(hyperparameters: Mapping[str, Any]) -> list[str]:
    """The script's arguments: `--key value` pairs, sorted by key; a key of one letter gets one dash.

    Raises ConfigurationError for text that no argument can hold: a NUL, or half of a surrogate pair.

    >>> to_arguments({"lr": 0.1, "b": True, "name": "a b", "sizes": [1, 2]})
    ['-b', 'True', '--lr', '0.1', '--name', 'a b', '--sizes', '[1, 2]']
    """
    arguments: list[str] = []
    for name in sorted(hyperparameters):
        pair = [f"-{name}" if len(name) == 1 else f"--{name}", _to_text(hyperparameters[name])]
        _check(name, "".join(pair))
        arguments += pair
    return arguments


def can_be_passed(text: str) -> bool:
    """Whether an argument or a variable can hold a text: one without a NUL, or half of a surrogate pair."""
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def _check(name: str, text: str) -> None:
    if not can_be_passed(text):
        raise ConfigurationError(
            f"the hyperparameter {name!r} holds a NUL or an unpaired surrogate, which no argument can carry; "
            "pass it as a file in a channel"
        )


def _to_text(value: Any) -> str:  # noqa: ANN401 - a hyperparameter is any JSON value
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={value[name]}" for name in sorted(value))
    return str(value)
