"""The argument `distribution=`: each module of this folder is one that it can name, but for `base`.

A module has a class `Options`, a `Distribution`. How the ranks of its world find each other on the hosts is for the
toolkit's module of the same name, in `estimator_container/worlds/distributions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from estimator_container.worlds.distributions import NAMES

from ...values.naming import shown, suggestion
from .base import Distribution, refused

__all__ = ["NAMES", "options_of", "parse"]

_EXAMPLE = '{"mpi": {"enabled": True, "processes_per_host": 2}}'
_NOT_SUPPORTED = ("smdistributed", "pytorchddp", "instance_groups")
"""SageMaker knows these, and no backend here runs them."""


def options_of(name: str) -> type[Distribution]:
    """The class of a distribution's options."""
    options: type[Distribution] = import_module(f"{__name__}.{name}").Options
    return options


def parse(distribution: Mapping[str, object] | None) -> Distribution | None:
    """What `distribution=` says; None for no distribution.

    Raises InvalidArgument for a name that is unknown or not supported, for two that are enabled at once, and for a
    value of the wrong type or range.

    >>> parse({"mpi": {"enabled": True, "processes_per_host": 2}})
    Mpi(enabled=True, processes_per_host=2, custom_mpi_options='')
    >>> parse({"torch_distributed": {"enabled": True}})
    TorchDistributed(enabled=True, processes_per_host=None)
    """
    if distribution is None:
        return None
    if not isinstance(distribution, Mapping):
        raise refused("", f"must be a dict such as {_EXAMPLE}, not {shown(distribution)}")
    for name in distribution:
        if name in _NOT_SUPPORTED:
            raise refused(f"[{name!r}]", f"is not supported; use one of {', '.join(NAMES)}, such as {_EXAMPLE}")
        if name not in NAMES:
            hint = suggestion(name, (*NAMES, *_NOT_SUPPORTED))
            raise refused(f"[{name!r}]", f"is not a distribution; {hint}")
    parsed = [options_of(name).from_options(given) for name, given in distribution.items()]
    enabled = [each for each in parsed if each.enabled]
    if len(enabled) > 1:
        raise refused("", f"must enable one distribution, but enables {' and '.join(distribution)}; leave one out")
    return next(iter(enabled or parsed), None)
