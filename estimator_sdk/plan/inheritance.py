"""What the hosts of a plan inherit from the process that calls `fit()`: the variables of its environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import InvalidArgument
from ..spec.environment_argument import check_inherited
from .plan import EVERYTHING, Plan

NEEDED = (
    "CUDA_VISIBLE_DEVICES",  # to take no GPU that is another's
    "ESTIMATOR_*",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LD_*",
    "LOGNAME",
    "PATH",
    "PYTHONHOME",
    "PYTHONPATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
)
"""What a process of this machine inherits in any case, so that it starts and finds the same Python as its parent."""


def for_processes(plan: Plan) -> Plan:
    """The plan with what its hosts inherit where they are processes. Raises InvalidArgument."""
    chosen = _chosen(plan)
    return replace(plan, inherited=EVERYTHING if chosen is True or chosen is None else (*NEEDED, *(chosen or ())))


def for_nodes(plan: Plan, around: Sequence[str]) -> Plan:
    """The plan with what its hosts inherit where they are processes of other machines: `around` and what is named.

    Raises InvalidArgument.
    """
    chosen = _chosen(plan)
    return replace(plan, inherited=EVERYTHING if chosen is True else (*NEEDED, *around, *(chosen or ())))


def for_containers(plan: Plan, around: Mapping[str, str]) -> Plan:
    """The plan with those variables of `around` that are named, beside the user's own. Raises InvalidArgument for all.

    They become the user's own: an engine knows nothing of this process.
    """
    chosen = _chosen(plan)
    if chosen is True:
        what = "inherit_environment is True, but a container has its image's own PATH, HOME and so on"
        raise InvalidArgument("inherit_environment", f"{what}; list the names that it needs, or leave it out")
    named = replace(plan, inherited=tuple(chosen or ())).inherited_from(around)
    return replace(plan, environment={**named, **plan.environment})


def refuse_inherited(plan: Plan) -> None:
    """Raises InvalidArgument where instances that inherit nothing are to inherit something."""
    if _chosen(plan):
        what = (
            "inherit_environment: an instance of SageMaker inherits nothing from this process, and what it is given is "
        )
        hint = "put what may be visible in environment=, let the job's role give access, or leave it out"
        raise InvalidArgument("inherit_environment", f"{what}shown to everyone who may describe the job; {hint}")


def _chosen(plan: Plan) -> bool | Sequence[str] | None:
    """What a job says that need not have been made by an Estimator."""
    given = plan.decoded.reserved.inherit_environment
    check_inherited(given)
    return given
