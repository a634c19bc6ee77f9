"""How a script's processes are spread over the hosts of a plan. Each distribution rewrites a plan, and no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from estimator_container.contract.names import PROCESSES_PER_HOST
from estimator_container.runtime.errors import ConfigurationError
from estimator_container.worlds import distributions as container_distributions

from ..errors import InvalidArgument
from ..spec.distributions import options_of
from ..spec.distributions.base import MAX_RANKS, ManyOnAHost
from ..values.naming import shown
from .plan import Plan, RankPlan

Distribution = Callable[[Plan, Mapping[str, Any], int], Plan]
"""Takes a plan, the decoded hyperparameters, and the GPUs of one host."""
T = TypeVar("T")


def none(plan: Plan, hyperparameters: Mapping[str, Any], gpus: int) -> Plan:
    """Every host runs the script once; what each leaves in `model/` is part of the model."""
    return replace(
        plan,
        distribution="none",
        ranks=tuple(RankPlan(None, 0, host.name) for host in plan.hosts),
        model_hosts=tuple(host.name for host in plan.hosts),
    )


def world(plan: Plan, hyperparameters: Mapping[str, Any], gpus: int) -> Plan:
    """One world over all hosts, its ranks numbered host by host; the first host writes the model.

    What was left to the GPUs of the instance type is told to the hosts, whose own GPUs may be others on this machine.
    Raises InvalidArgument for a number of processes or options that the toolkit would refuse.
    """
    names = tuple(host.name for host in plan.hosts)
    found = _checked(lambda: container_distributions.world(hyperparameters, names, gpus))
    name = container_distributions.name_of(hyperparameters)
    assert found is not None and name is not None
    if found.size > MAX_RANKS:
        each = f"{len(names)} hosts with {shown(found.processes_per_host)} processes each"
        raise InvalidArgument(
            "distribution", f"distribution: {each} are more than {MAX_RANKS:,} in all; lower one of the two"
        )
    ranks = (RankPlan(rank, rank % found.processes_per_host, found.host_of(rank)) for rank in range(found.size))
    is_chosen = issubclass(options_of(name), ManyOnAHost)
    told = {PROCESSES_PER_HOST: json.dumps(found.processes_per_host)} if is_chosen else {}
    return replace(
        plan,
        distribution=name,
        ranks=tuple(ranks),
        model_hosts=names[:1],
        hyperparameters={**told, **plan.hyperparameters},
    )


def from_hyperparameters(hyperparameters: Mapping[str, Any]) -> Distribution:
    """The distribution that the reserved hyperparameters of a job ask for. Raises InvalidArgument for two at once."""
    return none if _checked(lambda: container_distributions.name_of(hyperparameters)) is None else world


def refuse_others(hyperparameters: Mapping[str, Any]) -> None:
    """Raises InvalidArgument for a distribution that our toolkit does not have: a document may ask for any."""
    _checked(lambda: container_distributions.refuse_others(hyperparameters))


def _checked(decide: Callable[[], T]) -> T:
    try:
        return decide()
    except ConfigurationError as error:
        raise InvalidArgument("distribution", f"distribution: {error}") from None
