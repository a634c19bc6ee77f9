"""The distributions that a job can ask for: each module of this folder is one, under its own name.

A module has `world(hyperparameters, hosts, gpus)`, which gives the world of the ranks on these hosts, each with so
many GPUs, and raises ConfigurationError for what the decoded hyperparameters may not say. It is imported where a job
asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ...contract.hyperparameters import OF_OTHER_TOOLKITS
from ...runtime.errors import ConfigurationError
from ..world import World

_FILES = os.listdir(os.path.dirname(__file__))
NAMES = tuple(sorted(each[:-3] for each in _FILES if each.endswith(".py") and not each.startswith("_")))
_TRUE = (True, "True", "true")


def enabled_by(name: str) -> str:
    """The reserved hyperparameter that enables a distribution.

    >>> enabled_by("torch_distributed")
    'sagemaker_torch_distributed_enabled'
    """
    return f"sagemaker_{name}_enabled"


def name_of(hyperparameters: Mapping[str, Any]) -> str | None:
    """The name of the distribution that is enabled; None without one. Raises ConfigurationError for two at once."""
    names = [name for name in NAMES if hyperparameters.get(enabled_by(name)) in _TRUE]
    if len(names) > 1:
        raise ConfigurationError(f"{' and '.join(names)} are both enabled, but a job has only one distribution")
    return names[0] if names else None


def refuse_others(hyperparameters: Mapping[str, Any]) -> None:
    """Raises ConfigurationError for a distribution that only other toolkits have.

    Without it each host would train by itself, and nobody would be told.
    """
    for key in OF_OTHER_TOOLKITS:
        if hyperparameters.get(key) in _TRUE:
            raise ConfigurationError(
                f"{key} asks for a distribution that this toolkit does not have; use one of {', '.join(NAMES)}, or "
                "an image that has it"
            )


def world(hyperparameters: Mapping[str, Any], hosts: tuple[str, ...], gpus: int) -> World | None:
    """The world on these hosts, each with so many GPUs; None where every host runs the script by itself.

    Raises ConfigurationError for what the hyperparameters may not say.
    """
    name = name_of(hyperparameters)
    if name is None:
        return None
    found: World = import_module(f"{__name__}.{name}").world(hyperparameters, hosts, gpus)
    return found
