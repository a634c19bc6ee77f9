"""How a script's processes are spread over the hosts of a plan. Each distribution rewrites a plan, and no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from estimator_container import mpi as container_mpi
from estimator_container.configuration import ConfigurationError

from .distribution_argument import PROCESSES_PER_HOST
from .errors import InvalidArgument
from .plan import Plan, RankPlan

Distribution = Callable[[Plan, Mapping[str, Any], int], Plan]
"""Takes a plan, the decoded hyperparameters, and the GPUs of one host."""


def none(plan: Plan, hyperparameters: Mapping[str, Any], gpus: int) -> Plan:
    """Every host runs the script once; what each leaves in `model/` is part of the model."""
    return replace(
        plan,
        distribution="none",
        ranks=tuple(RankPlan(None, 0, host.name) for host in plan.hosts),
        model_hosts=tuple(host.name for host in plan.hosts),
    )


def mpi(plan: Plan, hyperparameters: Mapping[str, Any], gpus: int) -> Plan:
    """One MPI world over all hosts, its ranks numbered host by host; the first host writes the model.

    What was left to the GPUs of the instance type is told to the hosts, whose own GPUs may be others on this machine.
    Raises InvalidArgument for a number of processes or options that the toolkit would refuse.
    """
    names = tuple(host.name for host in plan.hosts)
    try:
        world = container_mpi.world(hyperparameters, names, gpus)
    except ConfigurationError as error:
        raise InvalidArgument("distribution", f"distribution: {error}") from None
    ranks = (RankPlan(rank, rank % world.processes_per_host, world.host_of(rank)) for rank in range(world.size))
    told = {PROCESSES_PER_HOST: json.dumps(world.processes_per_host), **plan.hyperparameters}
    return replace(plan, distribution="mpi", ranks=tuple(ranks), model_hosts=names[:1], hyperparameters=told)


def of(hyperparameters: Mapping[str, Any]) -> Distribution:
    """The distribution that the reserved hyperparameters of a job ask for."""
    return mpi if container_mpi.is_enabled(hyperparameters) else none
