"""Which world the reserved hyperparameters of a job ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.hyperparameters import OF_OTHER_TOOLKITS
from ..contract.names import ENABLED, MPI, MULTI_WORKER_MIRRORED, TORCH_DISTRIBUTED
from ..runtime.errors import ConfigurationError
from .world import World, processes_per_host

_TRUE = (True, "True", "true")


def name_of(hyperparameters: Mapping[str, Any]) -> str | None:
    """The name of the distribution that is enabled; None without one. Raises ConfigurationError for two at once."""
    names = [name for name, key in ENABLED.items() if hyperparameters.get(key) in _TRUE]
    if len(names) > 1:
        raise ConfigurationError(f"{' and '.join(names)} are both enabled, and a job has one distribution")
    return names[0] if names else None


def refuse_others(hyperparameters: Mapping[str, Any]) -> None:
    """Raises ConfigurationError for a distribution that only other toolkits have.

    Without it each host would train by itself, and nobody would be told.
    """
    for key in OF_OTHER_TOOLKITS:
        if hyperparameters.get(key) in _TRUE:
            raise ConfigurationError(
                f"{key} asks for a distribution that this toolkit does not have; use one of {', '.join(ENABLED)}, or "
                "an image that has it"
            )


def world(hyperparameters: Mapping[str, Any], hosts: tuple[str, ...], gpus: int) -> World | None:
    """The world on these hosts, each with so many GPUs; None where every host runs the script by itself.

    Raises ConfigurationError for what the hyperparameters may not say.
    """
    name = name_of(hyperparameters)
    # Each is imported where a job asks for it.
    if name == MPI:
        from .mpi.world import from_hyperparameters

        return from_hyperparameters(hyperparameters, hosts, gpus)
    if name == TORCH_DISTRIBUTED:
        from . import torch_distributed

        return torch_distributed.World(hosts, processes_per_host(hyperparameters, gpus))
    if name == MULTI_WORKER_MIRRORED:
        from . import multi_worker_mirrored

        return multi_worker_mirrored.World(hosts, 1)
    return None
