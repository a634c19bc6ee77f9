"""How a script's processes are spread over the hosts of a plan. Each distribution rewrites a plan, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from estimator_container.contract.reserved import Reserved
from estimator_container.runtime.errors import ConfigurationError
from estimator_container.worlds import distributions as container_distributions

from ..errors import InvalidArgument
from ..spec.distributions import options_of
from ..spec.distributions.base import MAX_RANKS, ManyOnAHost
from ..values.naming import shown
from .plan import Plan, RankPlan

T = TypeVar("T")


def distributed(plan: Plan, gpus: int) -> Plan:
    """The plan with its ranks, as the reserved hyperparameters ask for them; `gpus` are those of one host.

    Raises InvalidArgument for two distributions at once, and for a number of processes or options that the toolkit
    would refuse.
    """
    name = _checked(lambda: container_distributions.name_of(plan.decoded.reserved))
    return _without_world(plan) if name is None else _in_world(plan, name, gpus)


def _without_world(plan: Plan) -> Plan:
    """Every host runs the script once; what each leaves in `model/` is part of the model."""
    return replace(
        plan,
        distribution="none",
        ranks=tuple(RankPlan(None, 0, host.name) for host in plan.hosts),
        model_hosts=tuple(host.name for host in plan.hosts),
    )


def _in_world(plan: Plan, name: str, gpus: int) -> Plan:
    """One world over all hosts, its ranks numbered host by host; the first host writes the model.

    What was left to the GPUs of the instance type is told to the hosts, whose own GPUs may be others on this machine.
    """
    names = tuple(host.name for host in plan.hosts)
    found = _checked(lambda: container_distributions.world(plan.decoded.reserved, names, gpus))
    assert found is not None
    if found.size > MAX_RANKS:
        each = f"{len(names)} hosts with {shown(found.processes_per_host)} processes each"
        raise InvalidArgument(
            "distribution", f"distribution: {each} are more than {MAX_RANKS:,} in all; lower one of the two"
        )
    ranks = (RankPlan(rank, rank % found.processes_per_host, found.host_of(rank)) for rank in range(found.size))
    is_chosen = issubclass(options_of(name), ManyOnAHost)
    told = Reserved(processes_per_host=found.processes_per_host).encode() if is_chosen else {}
    return replace(
        plan,
        distribution=name,
        ranks=tuple(ranks),
        model_hosts=names[:1],
        hyperparameters={**told, **plan.hyperparameters},
    )


def refuse_others(plan: Plan) -> None:
    """Raises InvalidArgument for a distribution that our toolkit does not have: a document may ask for any."""
    _checked(lambda: container_distributions.refuse_others(plan.decoded.reserved))


def _checked(decide: Callable[[], T]) -> T:
    try:
        return decide()
    except ConfigurationError as error:
        raise InvalidArgument("distribution", f"distribution: {error}") from None
