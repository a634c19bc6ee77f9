"""The backends: each makes a plan of a job, and runs exactly that plan.

They are found by the entry point group `estimator_sdk.backends` and loaded when used, so that nothing a user does
not need costs anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from ..errors import InvalidArgument
from ..values.naming import shown, suggestion

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ..plan.plan import Plan
    from ..spec.job_document import JobDocument
    from .port import StartedJob
    from .supervised.supervisor.hosts import HostsFactory

GROUP = "estimator_sdk.backends"
BUILT_IN = {
    "process": "estimator_sdk.backends.process.backend:ProcessBackend",
    "docker": "estimator_sdk.backends.docker.backend:DockerBackend",
    "sagemaker": "estimator_sdk.backends.sagemaker.backend:SageMakerBackend",
}


class Backend(Protocol):
    """Where jobs run."""

    name: str

    def plan(self, spec: JobDocument) -> Plan:
        """Resolve a job, without starting anything. Raises InvalidArgument for what cannot run here."""

    def start(self, plan: Plan) -> StartedJob:
        """Put the code where the plan keeps it, start exactly what the plan says, and return at once."""


class LocalBackend(Backend, Protocol):
    """A backend whose jobs have a supervisor on this machine."""

    hosts: HostsFactory


def load(name: str) -> Backend:
    """The backend of that name. Raises InvalidArgument for an unknown one, with the nearest."""
    if name in BUILT_IN:
        return _from_path(BUILT_IN[name])
    installed = _installed()
    if name not in installed:
        raise _unknown(name, installed)
    made: Backend = installed[name].load()()
    return made


def check_name(name: str) -> None:
    """Raises InvalidArgument if no backend has that name; loads none."""
    if name not in BUILT_IN and name not in (installed := _installed()):
        raise _unknown(name, installed)


def hosts_factory(name: str) -> HostsFactory:
    """What a supervisor starts the hosts of a local backend with."""
    backend: LocalBackend = load(name)  # type: ignore[assignment]
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


def _installed() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=GROUP)}


def _unknown(name: str, installed: Iterable[str]) -> InvalidArgument:
    return InvalidArgument(
        "backend", f"backend {shown(name)} is not known; {suggestion(name, {*BUILT_IN, *installed})}"
    )
