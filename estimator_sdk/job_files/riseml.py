"""The form of a `riseml.yml`: its project, framework, Horovod workers, resources and the lines of `run`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from .. import backends
from ..values import job_name
from .parts import Parts

if TYPE_CHECKING:
    from .document import Document, Place

MIB_OF_GIB = 1024
_WORKERS: Place = ("train", "tensorflow", "horovod", "workers")
_VERSION: Place = ("train", "tensorflow", "version")
_PLACES: dict[str, Place] = {
    "base_job_name": ("project",),
    "framework_version": _VERSION,
    "instance_count": (*_WORKERS, "count"),
    "distribution": (*_WORKERS, "processes"),
    "instance_type": ("train", "resources", "gpus"),
    "cpus": ("train", "resources", "cpus"),
    "memory": ("train", "resources", "mem"),
    "steps": ("train", "run"),
}


def is_meant(value: dict[str, Any]) -> bool:
    """Whether a file is of this form."""
    return "project" in value or "train" in value


def parts(document: Document, backend: str | None) -> Parts:
    """What a file of this form says; the code is the folder that it is in.

    A worker is a host. Each has one process for each of its GPUs, else one, unless `processes` says it.
    """
    train: dict[str, Any] = document.value["train"]
    resources = train.get("resources", {})
    run = train["run"]
    version = document.text(_VERSION)  # as it is written: 2.20 is not 2.2
    arguments: dict[str, Any] = {
        "base_job_name": job_name.base_of(document.value["project"]),
        "source_dir": str(document.path.parent),
        "steps": [run] if isinstance(run, str) else run,
        "instance_type": "local_gpu" if resources.get("gpus") else "local",
        **_workers(train.get("tensorflow", {}).get("horovod"), resources.get("gpus", 0)),
        **({} if version is None else {"framework_version": version}),
        **({} if backend is None else {"backend": backend}),
    }
    guaranteed = {"cpus": resources.get("cpus"), "memory": _gib(resources.get("mem"))}
    if _has_limits(arguments):
        arguments |= {name: value for name, value in guaranteed.items() if value is not None}
    elif any(value is not None for value in guaranteed.values()):
        what = "cpus and mem are for workers that are containers, and are ignored for workers that are processes"
        warnings.warn(f"{document.path}: {what}; use backend {backends.with_limits()} to set them", stacklevel=2)
    return Parts(train["framework"], arguments, _PLACES, None)


def _workers(horovod: dict[str, Any] | None, gpus: int) -> dict[str, Any]:
    if horovod is None:
        return {"instance_count": 1}
    workers = horovod["workers"]
    given = workers if isinstance(workers, dict) else {"count": workers}
    processes = given.get("processes", max(1, gpus))
    return {
        "instance_count": given["count"],
        "distribution": {"mpi": {"enabled": True, "processes_per_host": processes}},
    }


def _gib(mib: float | None) -> float | None:
    return None if mib is None else mib / MIB_OF_GIB


def _has_limits(arguments: dict[str, Any]) -> bool:
    """Whether hosts can be held to CPUs and memory. A framework's version chooses an image."""
    named = arguments.get("backend") or backends.choose(arguments["instance_type"], "framework_version" in arguments)
    return backends.capabilities(named).has_limits
