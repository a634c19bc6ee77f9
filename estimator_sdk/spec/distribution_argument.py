"""The argument `distribution=`: what it may say, and the reserved hyperparameters that carry it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from estimator_container.contract.names import (
    ENABLED,
    MPI,
    MULTI_WORKER_MIRRORED,
    PROCESSES_PER_HOST,
    TORCH_DISTRIBUTED,
)

from ..errors import InvalidArgument
from ..values.naming import shown, suggestion

MAX_RANKS = 1 << 18
"""Of a whole job."""
_EXAMPLE = '{"mpi": {"enabled": True, "processes_per_host": 2}}'
# SageMaker knows these, and no backend here runs them.
_NOT_SUPPORTED = ("parameter_server", "smdistributed", "pytorchddp", "instance_groups")


@dataclass(frozen=True)
class Mpi:
    """The script is run by mpirun, so many processes on each host."""

    enabled: bool
    """False runs the script once on each host, as no `distribution` does."""
    processes_per_host: int | None = None
    """None means one for each GPU of the instance type, else one."""
    custom_mpi_options: str = ""
    """Options for mpirun, split into words as a shell would."""

    def to_hyperparameters(self) -> dict[str, object]:
        options = {"sagemaker_mpi_custom_mpi_options": self.custom_mpi_options}
        return {ENABLED[MPI]: self.enabled, **_told_processes(self.processes_per_host), **options}


@dataclass(frozen=True)
class TorchDistributed:
    """The script is run as torchrun would, so many processes on each host."""

    enabled: bool
    processes_per_host: int | None = None
    """None means one for each GPU of the instance type, else one."""

    def to_hyperparameters(self) -> dict[str, object]:
        return {ENABLED[TORCH_DISTRIBUTED]: self.enabled, **_told_processes(self.processes_per_host)}


@dataclass(frozen=True)
class MultiWorkerMirroredStrategy:
    """The script is run once on each host, as a worker of TensorFlow's strategy of that name."""

    enabled: bool

    def to_hyperparameters(self) -> dict[str, object]:
        return {ENABLED[MULTI_WORKER_MIRRORED]: self.enabled}


Distribution = Mpi | TorchDistributed | MultiWorkerMirroredStrategy


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
        raise _refused("", f"must be a dict such as {_EXAMPLE}, not {shown(distribution)}")
    for name in distribution:
        if name in _NOT_SUPPORTED:
            raise _refused(f"[{name!r}]", f"is not supported; use one of {', '.join(_PARSERS)}, such as {_EXAMPLE}")
        if name not in _PARSERS:
            hint = suggestion(name, (*_PARSERS, *_NOT_SUPPORTED))
            raise _refused(f"[{name!r}]", f"is not a distribution; {hint}")
    parsed = [_PARSERS[name](name, given) for name, given in distribution.items()]
    enabled = [each for each in parsed if each.enabled]
    if len(enabled) > 1:
        raise _refused("", f"must enable one distribution, and enables {' and '.join(distribution)}; leave one out")
    return next(iter(enabled or parsed), None)


def to_hyperparameters(distribution: Distribution | None) -> dict[str, str]:
    """The reserved hyperparameters that tell the container, in JSON, under the SageMaker SDK's names."""
    values = distribution.to_hyperparameters() if distribution is not None else {}
    return {name: json.dumps(value) for name, value in values.items()}


def _told_processes(given: int | None) -> dict[str, object]:
    return {} if given is None else {PROCESSES_PER_HOST: given}


def _parse_mpi(name: str, given: object) -> Mpi:
    enabled, values = _values(name, given, ("processes_per_host", "custom_mpi_options"))
    return Mpi(enabled, _processes(name, values.get("processes_per_host")), _options(values.get("custom_mpi_options")))


def _parse_torch_distributed(name: str, given: object) -> TorchDistributed:
    enabled, values = _values(name, given, ("processes_per_host",))
    return TorchDistributed(enabled, _processes(name, values.get("processes_per_host")))


def _parse_multi_worker_mirrored(name: str, given: object) -> MultiWorkerMirroredStrategy:
    return MultiWorkerMirroredStrategy(_values(name, given, ())[0])


_PARSERS: Mapping[str, Callable[[str, object], Distribution]] = {
    MPI: _parse_mpi,
    TORCH_DISTRIBUTED: _parse_torch_distributed,
    MULTI_WORKER_MIRRORED: _parse_multi_worker_mirrored,
}


def _values(name: str, given: object, others: tuple[str, ...]) -> tuple[bool, Mapping[str, object]]:
    """Whether the distribution is enabled, and all that is said of it; `others` are the keys besides `enabled`."""
    example = f'{{"{name}": {{"enabled": True}}}}'
    if not isinstance(given, Mapping):
        raise _refused(f"[{name!r}]", f"must be a dict, as in {example}, not {shown(given)}")
    for key in given:
        if key not in ("enabled", *others):
            raise _refused(f"[{name!r}][{shown(key)}]", f"is not known; {suggestion(key, ('enabled', *others))}")
    enabled = given.get("enabled")
    if not isinstance(enabled, bool):
        got = shown(enabled) if "enabled" in given else "absent"
        raise _refused(f"[{name!r}]['enabled']", f"must be True or False, and is {got}; write {example}")
    return enabled, given


def _processes(name: str, given: object) -> int | None:
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        what = f"must be a whole number of at least 1, such as 2, not {shown(given)} ({type(given).__name__})"
        raise _refused(f"[{name!r}]['processes_per_host']", f"{what}; leave it out for one process per GPU")
    if given > MAX_RANKS:
        what = f"is {shown(given)}, and a job has at most {MAX_RANKS:,} processes in all"
        raise _refused(f"[{name!r}]['processes_per_host']", f"{what}; lower it")
    return given


def _options(given: object) -> str:
    if given is None:
        return ""
    where = "['mpi']['custom_mpi_options']"
    if not isinstance(given, str):
        raise _refused(where, f"must be a str such as '-mca btl self,tcp', not {shown(given)} ({type(given).__name__})")
    import shlex

    try:
        shlex.split(given)
    except ValueError as error:
        raise _refused(where, f"cannot be split into words: {error}; check the quotes in {given!r}") from None
    return given


def _refused(where: str, what: str) -> InvalidArgument:
    return InvalidArgument(f"distribution{where}", f"distribution{where} {what}")
