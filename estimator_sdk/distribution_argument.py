"""The argument `distribution=`: what it may say, and the reserved hyperparameters that carry it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import InvalidArgument
from .naming import suggestion

PROCESSES_PER_HOST = "sagemaker_mpi_num_of_processes_per_host"
_EXAMPLE = '{"mpi": {"enabled": True, "processes_per_host": 2}}'
_MPI_KEYS = ("enabled", "processes_per_host", "custom_mpi_options")
# SageMaker knows these, and no backend here runs them.
_NOT_SUPPORTED = (
    "torch_distributed",
    "parameter_server",
    "multi_worker_mirrored_strategy",
    "smdistributed",
    "pytorchddp",
    "instance_groups",
)


@dataclass(frozen=True)
class Mpi:
    """The script is run by mpirun, so many processes on each host."""

    enabled: bool
    """False runs the script once on each host, as no `distribution` does."""
    processes_per_host: int | None = None
    """None means one for each GPU of the instance type, else one."""
    custom_mpi_options: str = ""
    """Options for mpirun, split into words as a shell would."""


def parse(distribution: Mapping[str, object] | None) -> Mpi | None:
    """What `distribution=` says; None for no distribution.

    Raises InvalidArgument for a name that is unknown or not supported, and for a value of the wrong type or
    range.

    >>> parse({"mpi": {"enabled": True, "processes_per_host": 2}})
    Mpi(enabled=True, processes_per_host=2, custom_mpi_options='')
    """
    if distribution is None:
        return None
    if not isinstance(distribution, Mapping):
        raise _refused("", f"must be a dict such as {_EXAMPLE}, not {distribution!r}")
    for name in distribution:
        if name in _NOT_SUPPORTED:
            raise _refused(f"[{name!r}]", f"is not supported; use mpi: {_EXAMPLE}")
        if name != "mpi":
            hint = suggestion(str(name), ("mpi", *_NOT_SUPPORTED))
            raise _refused(f"[{name!r}]", f"is not a distribution; {hint}")
    return _parse_mpi(distribution["mpi"]) if "mpi" in distribution else None


def to_hyperparameters(mpi: Mpi | None) -> dict[str, str]:
    """The reserved hyperparameters that tell the container, in JSON, under the SageMaker SDK's names."""
    if mpi is None:
        return {}
    values: dict[str, object] = {"sagemaker_mpi_enabled": mpi.enabled}
    if mpi.processes_per_host is not None:
        values[PROCESSES_PER_HOST] = mpi.processes_per_host
    values["sagemaker_mpi_custom_mpi_options"] = mpi.custom_mpi_options
    return {name: json.dumps(value) for name, value in values.items()}


def _parse_mpi(given: object) -> Mpi:
    if not isinstance(given, Mapping):
        raise _refused("['mpi']", f"must be a dict such as {_EXAMPLE}, not {given!r}")
    for key in given:
        if key not in _MPI_KEYS:
            raise _refused(f"['mpi'][{key!r}]", f"is not known; {suggestion(str(key), _MPI_KEYS)}")
    enabled = given.get("enabled")
    if not isinstance(enabled, bool):
        got = repr(enabled) if "enabled" in given else "absent"
        raise _refused("['mpi']['enabled']", f"must be True or False, and is {got}; write {_EXAMPLE}")
    return Mpi(enabled, _processes(given.get("processes_per_host")), _options(given.get("custom_mpi_options")))


def _processes(given: object) -> int | None:
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        what = f"must be a whole number of at least 1, such as 2, not {given!r} ({type(given).__name__})"
        raise _refused("['mpi']['processes_per_host']", f"{what}; leave it out for one process per GPU")
    return given


def _options(given: object) -> str:
    if given is None:
        return ""
    where = "['mpi']['custom_mpi_options']"
    if not isinstance(given, str):
        raise _refused(where, f"must be a str such as '-mca btl self,tcp', not {given!r} ({type(given).__name__})")
    import shlex

    try:
        shlex.split(given)
    except ValueError as error:
        raise _refused(where, f"cannot be split into words: {error}; check the quotes in {given!r}") from None
    return given


def _refused(where: str, what: str) -> InvalidArgument:
    return InvalidArgument(f"distribution{where}", f"distribution{where} {what}")
