"""The argument `environment=`: which variables there can be."""

from __future__ import annotations

from collections.abc import Mapping

from estimator_container.hyperparameters import can_be_passed

from .errors import InvalidArgument
from .naming import WHAT_A_NAME_IS, can_be_name


def check(environment: Mapping[str, str]) -> None:
    """Raises InvalidArgument for a name or a value that no environment can hold."""
    for name, value in environment.items():
        if not can_be_name(name):
            raise _refused(name, f"has a name {WHAT_A_NAME_IS}, and could be no variable; rename it")
        if not can_be_passed(value):
            what = "holds a NUL or an unpaired surrogate, which no variable can hold"
            raise _refused(name, f"{what}; pass it as a file in a channel")


def _refused(name: str, what: str) -> InvalidArgument:
    argument = f"environment[{name!r}]"
    return InvalidArgument(argument, f"{argument} {what}")
