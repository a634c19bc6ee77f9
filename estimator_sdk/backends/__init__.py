"""The backends: each makes a plan of a job, and runs exactly that plan.

They are found by the entry point group `estimator_sdk.backends` and loaded when used, so that nothing a user does
not need costs anything. Each of ours is a folder here, whose `__init__` says what it can do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import InvalidArgument, JobNotFound
from ..values.naming import shown, suggestion
from .port import Backend as Backend
from .port import KeepsNotes

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .port import Capabilities, StartedJob
    from .supervised.supervisor.hosts import HostsFactory

GROUP = "estimator_sdk.backends"
BUILT_IN: Mapping[str, str] = {
    "process": "estimator_sdk.backends.process.backend:ProcessBackend",
    "docker": "estimator_sdk.backends.docker.backend:DockerBackend",
    "slurm": "estimator_sdk.backends.slurm.backend:SlurmBackend",
    "ssh": "estimator_sdk.backends.ssh.backend:SshBackend",
    "spark": "estimator_sdk.backends.spark.backend:SparkBackend",
    "sagemaker": "estimator_sdk.backends.sagemaker.backend:SageMakerBackend",
}
"""Name -> class. Where nobody names one, the first is taken that fits."""


def load(name: str) -> Backend:
    """The backend with that name. Raises InvalidArgument for an unknown one, and suggests the nearest."""
    if isinstance(name, str) and name in BUILT_IN:
        return _from_path(BUILT_IN[name])
    installed = _installed()
    if not isinstance(name, str) or name not in installed:
        known = suggestion(name, {*BUILT_IN, *installed})
        raise InvalidArgument("backend", f"backend {shown(name)} is not known; {known}")
    made: Backend = installed[name].load()()
    return made


def names() -> tuple[str, ...]:
    """The names of all backends, those of other packages last."""
    return (*BUILT_IN, *installed())


def capabilities(name: str) -> Capabilities:
    """What the backend of that name can do; none of ours is loaded for that. Raises as `load` does."""
    if name not in BUILT_IN:
        return load(name).capabilities
    from importlib import import_module

    found: Capabilities = import_module(BUILT_IN[name].rpartition(".")[0]).CAPABILITIES
    return found


def attach(name: str) -> StartedJob:
    """The job with that name on any backend: one in the user's home, else the first backend's that has it.

    Those at a service are asked last. Raises JobNotFound, which says where it was looked for.
    """
    from .supervised import job

    try:
        found = job.attach(name)
    except JobNotFound as missing:
        told = [str(missing)]
    else:
        owner = found.summary().backend
        if owner in BUILT_IN and not capabilities(owner).is_supervised:  # a pool's, whose machines have this home
            with suppress(JobNotFound):
                return load(owner).attach(name)
        return found
    others = _elsewhere()
    for each in sorted(others, key=lambda each: (others[each].is_remote, each in BUILT_IN)):
        try:
            return load(each).attach(name)
        except JobNotFound as missing:
            told.append(str(missing))
        except Exception as error:  # another package's, which must not hide what others have
            told.append(f"backend {each!r} could not be queried: {error}")
    raise JobNotFound("; and ".join(filter(None, told)))


def jobs(backend: str | None, limit: int | None, without: Collection[str] = ()) -> Sequence[StartedJob]:
    """The newest jobs of a backend, or without a name of all but those that ask a service; the newest first.

    `without` are backends that are left out then. Raises InvalidArgument for an unknown name.
    """
    if backend is not None:
        return load(backend).list(limit)
    from .supervised import job

    supervised: list[StartedJob] = [*job.jobs(limit=limit)]
    everything: list[StartedJob] = []
    near = [name for name, can in _elsewhere().items() if not can.is_remote and name not in without]
    for name in near:
        try:
            everything += load(name).list(limit)
        except Exception as error:
            warnings.warn(f"the jobs of backend {name!r} cannot be listed: {error}", stacklevel=4)
    known = {one.name for one in everything}
    if known:  # the first machine of a pool may have the same home
        shown = [(one, one.summary()) for one in supervised]
        supervised = [one for one, each in shown if each.name not in known or each.backend not in near]
    everything += supervised
    if near:
        everything.sort(key=lambda one: one.summary().created or 0.0, reverse=True)
    return everything[:limit]


def with_own_folders() -> list[str]:
    """The backends of ours whose jobs are not at a service, and have a folder in the home that is called like them."""
    return [name for name, can in _elsewhere().items() if name in BUILT_IN and not can.is_remote]


def submitted() -> list[StartedJob]:
    """The jobs that were submitted to a service from here, in no order; nobody is asked, so what is shown may be old.

    Only backends that have noted a job in the home are loaded for that.
    """
    from ..values.home import home

    found: list[StartedJob] = []
    for name, can in _elsewhere().items():
        if can.is_remote and (home() / name).is_dir():
            backend = load(name)
            found += backend.submitted() if isinstance(backend, KeepsNotes) else ()
    return found


def _elsewhere() -> dict[str, Capabilities]:
    """The backends whose jobs are not in the user's home, and what they can do.

    Warns of one of another package that cannot be used, and leaves it out.
    """
    found = {}
    for name in names():
        try:
            found[name] = capabilities(name)
        except Exception as error:
            what = f"backend {name!r}, which another package provides, cannot be used: {type(error).__name__}: {error}"
            warnings.warn(f"{what}; update that package, or uninstall it", stacklevel=4)
    return {name: can for name, can in found.items() if not can.is_supervised}


def hosts_factory(name: str) -> HostsFactory:
    """What a supervisor starts the hosts of such a backend with."""
    found: HostsFactory = load(name).hosts  # type: ignore[attr-defined]
    return found


def choose(instance_type: str, has_image: bool) -> str:
    """The first of our backends that fits, where `backend=` does not say; `has_image`: whether an image is named."""
    from ..spec.instances import LOCAL, ON_EXECUTORS, is_scheduled

    if is_scheduled(instance_type):
        return _first(lambda can: can.is_scheduled)
    if instance_type in ON_EXECUTORS:
        return _first(lambda can: can.has_executors)
    if instance_type not in LOCAL:
        return _first(lambda can: can.is_remote)
    return _first(lambda can: can.is_supervised and can.has_images == has_image)


def with_pool() -> str:
    """The first of our backends whose hosts are machines that the job names."""
    return _first(lambda can: can.has_pool)


def with_limits() -> str:
    """The first of our backends whose hosts can be held to `cpus` and `memory`."""
    return _first(lambda can: can.has_limits)


def _first(fits: Callable[[Capabilities], bool]) -> str:
    return next(name for name in BUILT_IN if fits(capabilities(name)))


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
