"""The distributions that a job can ask for: each module of this folder is one, under its own name.

A module has `world(reserved, hosts, gpus)`, which gives the world of the ranks on these hosts, each with so many GPUs,
and raises ConfigurationError for what the reserved hyperparameters may not say together. It is imported where a job
asks for it.
"""

from __future__ import annotations

import os
from importlib import import_module

from ...contract.reserved import Reserved, enabled_by
from ...runtime.errors import ConfigurationError
from ..world import World

_FILES = os.listdir(os.path.dirname(__file__))
NAMES = tuple(sorted(each[:-3] for each in _FILES if each.endswith(".py") and not each.startswith("_")))
OF_OTHER_TOOLKITS = ("distributed_dataparallel", "pytorch_ddp", "pytorch_xla_multi_worker")
"""Distributions with runners in `sagemaker-training` 5.1.4 (`smdataparallel.py`, `pytorch_xla.py`), or upon it."""


def name_of(reserved: Reserved) -> str | None:
    """The name of the distribution that is enabled; None without one. Raises ConfigurationError for two at once."""
    names = [name for name in NAMES if reserved.distributions.get(name)]
    if len(names) > 1:
        raise ConfigurationError(f"{' and '.join(names)} are both enabled, but a job has only one distribution")
    return names[0] if names else None


def refuse_others(reserved: Reserved) -> None:
    """Raises ConfigurationError for a distribution that only other toolkits have.

    Without it each host would train by itself, and nobody would be told.
    """
    for name in OF_OTHER_TOOLKITS:
        if reserved.distributions.get(name):
            raise ConfigurationError(
                f"{enabled_by(name)} asks for a distribution that this toolkit does not have; use one of "
                f"{', '.join(NAMES)}, or an image that has it"
            )


def world(reserved: Reserved, hosts: tuple[str, ...], gpus: int) -> World | None:
    """The world on these hosts, each with so many GPUs; None where every host runs the script by itself.

    Raises ConfigurationError for what the reserved hyperparameters may not say together.
    """
    name = name_of(reserved)
    if name is None:
        return None
    found: World = import_module(f"{__name__}.{name}").world(reserved, hosts, gpus)
    return found
