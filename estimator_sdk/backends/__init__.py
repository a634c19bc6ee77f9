"""The backends: each makes a plan of a job, and runs exactly that plan.

They are found by the entry point group `estimator_sdk.backends` and loaded when used, so that nothing a user does
not need costs anything.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ..errors import InvalidArgument, JobNotFound
from ..values.naming import shown, suggestion
from .port import Backend as Backend

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .port import StartedJob
    from .supervised.supervisor.hosts import HostsFactory

GROUP = "estimator_sdk.backends"
BUILT_IN = {
    "process": "estimator_sdk.backends.process.backend:ProcessBackend",
    "docker": "estimator_sdk.backends.docker.backend:DockerBackend",
    "sagemaker": "estimator_sdk.backends.sagemaker.backend:SageMakerBackend",
}


_AT_A_SERVICE = ("sagemaker",)
"""Of these, those that are remote: they are not loaded to find that out."""


class SupervisedBackend(Backend, Protocol):
    """A backend whose jobs have a supervisor on this machine."""

    hosts: HostsFactory


def load(name: str) -> Backend:
    """The backend with that name. Raises InvalidArgument for an unknown one, and suggests the nearest."""
    if name in BUILT_IN:
        return _from_path(BUILT_IN[name])
    installed = _installed()
    if name not in installed:
        raise _unknown(name, installed)
    made: Backend = installed[name].load()()
    return made


def check_name(name: str) -> None:
    """Raises InvalidArgument if no backend has that name, without loading any."""
    if name not in BUILT_IN and name not in (installed := _installed()):
        raise _unknown(name, installed)


def attach(name: str) -> StartedJob:
    """The job with that name on any backend: one in the user's home, else the first backend's that has it.

    Those at a service are asked last. Raises JobNotFound, which says where it was looked for.
    """
    from .supervised import job

    try:
        return job.attach(name)
    except JobNotFound as missing:
        told = [str(missing)]
    others = [*_foreign(), *(load(each) for each in _AT_A_SERVICE)]
    for backend in sorted(others, key=lambda each: each.capabilities.is_remote):
        try:
            return backend.attach(name)
        except JobNotFound as missing:
            told.append(str(missing))
        except Exception as error:  # another package's, which must not hide what others have
            told.append(f"backend {backend.name!r} could not be queried: {error}")
    raise JobNotFound("; and ".join(filter(None, told)))


def jobs(backend: str | None, limit: int | None) -> Sequence[StartedJob]:
    """The newest jobs of a backend, or without a name of all but those that ask a service; the newest first.

    Raises InvalidArgument for an unknown name.
    """
    if backend is not None:
        return load(backend).list(limit)
    from .supervised import job

    everything: list[StartedJob] = [*job.jobs()]
    near = [each for each in _foreign() if not each.capabilities.is_remote]
    for each in near:
        try:
            everything += each.list(limit)
        except Exception as error:
            warnings.warn(f"the jobs of backend {each.name!r} cannot be listed: {error}", stacklevel=4)
    if near:
        everything.sort(key=lambda one: one.summary().created or 0.0, reverse=True)
    return everything[:limit]


def _foreign() -> list[Backend]:
    """The backends of other packages, but for those whose jobs are in the user's home like ours.

    Warns of one that cannot be used, and leaves it out.
    """
    found = []
    for name in installed():
        try:
            made = load(name)
            if not made.capabilities.is_supervised:
                found.append(made)
        except Exception as error:
            what = f"backend {name!r}, which another package provides, cannot be used: {type(error).__name__}: {error}"
            warnings.warn(f"{what}; update that package, or uninstall it", stacklevel=4)
    return found


def hosts_factory(name: str) -> HostsFactory:
    """What a supervisor starts the hosts of such a backend with."""
    backend: SupervisedBackend = load(name)  # type: ignore[assignment]
    return backend.hosts


def choose(instance_type: str, image: str | None) -> str:
    """The backend that an instance type and an image ask for, where `backend=` does not say."""
    if instance_type not in ("local", "local_gpu"):
        return "sagemaker"
    return "process" if image is None else "docker"


def _from_path(path: str) -> Backend:
    from importlib import import_module

    module, _, name = path.partition(":")
    made: Backend = getattr(import_module(module), name)()
    return made


def installed() -> list[str]:
    """The names of the backends that other packages provide."""
    return sorted(_installed().keys() - BUILT_IN.keys())


def _installed() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=GROUP)}


def _unknown(name: str, installed: Iterable[str]) -> InvalidArgument:
    return InvalidArgument(
        "backend", f"backend {shown(name)} is not known; {suggestion(name, {*BUILT_IN, *installed})}"
    )
