"""The arguments `environment=` and `inherit_environment=`: what they can be."""

from __future__ import annotations

from collections.abc import Mapping

from estimator_container.contract.hyperparameters import can_be_passed

from ..errors import InvalidArgument
from ..values.naming import shown
from .hyperparameters import WHAT_A_NAME_IS, can_be_name


def check(environment: Mapping[str, str]) -> None:
    """Raises InvalidArgument for a name or a value that no environment can hold."""
    for name, value in environment.items():
        if not can_be_name(name):
            raise _refused(name, f"has a name {WHAT_A_NAME_IS}, so it cannot name a variable; rename it")
        if not can_be_passed(value):
            what = "holds a NUL or an unpaired surrogate, which no variable can hold"
            raise _refused(name, f"{what}; pass it as a file in a channel")


def check_inherited(given: object) -> None:
    """Raises InvalidArgument for what is neither True or False nor a list of names and patterns."""
    if given is None or isinstance(given, bool):
        return
    if not isinstance(given, (list, tuple)) or not all(isinstance(name, str) and can_be_name(name) for name in given):
        what = f"inherit_environment must be True, False, or a list of names and patterns, not {shown(given)}"
        raise InvalidArgument("inherit_environment", f"{what}; write it as ['AWS_*', 'HF_TOKEN']")


def _refused(name: str, what: str) -> InvalidArgument:
    argument = f"environment[{name!r}]"
    return InvalidArgument(argument, f"{argument} {what}")
