"""Reach the Docker engine, and say in one sentence why that fails."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ..errors import BackendError, InvalidArgument

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

JOB_LABEL = "estimator.job"
"""On every container and network of a job: its name."""
TOOLKIT_LABEL = "estimator.toolkit"
"""On images that hold our toolkit: it takes secrets from files and needs no root."""
GIB = 1 << 30
INSTEAD = "or use backend='process', which needs no engine"


def connect() -> DockerClient:
    """A client of the engine that DOCKER_HOST names, else of the local one. Raises BackendError."""
    try:
        import docker
    except ImportError:
        raise BackendError(
            f"backend 'docker' needs the package docker: pip install 'estimator-sdk[docker]', {INSTEAD}"
        ) from None
    try:
        return docker.from_env(timeout=120)
    except docker.errors.DockerException as error:
        raise BackendError(_why(error)) from None


def require_image(client: DockerClient, image: str) -> None:
    """Raises InvalidArgument when the engine does not have the image."""
    import docker

    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        raise InvalidArgument(
            "image_uri",
            f"image_uri {image!r} is not an image of the Docker engine; get it with `docker pull {image}`, or choose "
            "one of those that `python -m estimator_sdk.images --help` lists",
        ) from None


def require_room(client: DockerClient, cpus: float | None, memory: float | None) -> None:
    """Raises InvalidArgument when a host is to have more CPUs, or GiB of memory, than the engine's machine."""
    if cpus is None and memory is None:
        return
    machine = client.info()
    for name, wanted, there in (("cpus", cpus, machine["NCPU"]), ("memory", memory, machine["MemTotal"] / GIB)):
        if wanted is not None and wanted > there:
            raise InvalidArgument(
                name, f"{name}={wanted:g} is more than the {there:.4g} of the engine's machine; lower it"
            )


def has_toolkit(client: DockerClient, image: str) -> bool:
    """Whether the image holds our toolkit."""
    return TOOLKIT_LABEL in (client.images.get(image).labels or {})


def remove_container(container: Container) -> None:
    """End and remove a container; nothing happens if somebody else has."""
    import docker

    with contextlib.suppress(docker.errors.NotFound):
        container.remove(force=True, v=True)


def remove_job(client: DockerClient, job_name: str) -> None:
    """End and remove every container and network of a job, whatever state they are in."""
    import docker

    chosen = {"label": f"{JOB_LABEL}={job_name}"}
    for container in client.containers.list(all=True, filters=chosen, ignore_removed=True):
        remove_container(container)
    for network in client.networks.list(filters=chosen):
        try:
            network.remove()
        except docker.errors.NotFound:
            continue


def try_to_remove_job(job_name: str) -> bool:
    """As `remove_job`, on the engine that there is. False when it does not answer, or not with what was asked."""
    import docker

    try:
        remove_job(connect(), job_name)
    except (BackendError, docker.errors.DockerException, OSError):
        return False
    return True


def _why(error: Exception) -> str:
    text = str(error)
    if "Permission denied" in text:
        return (
            "the Docker engine's socket is not open to this user; join the group that owns it (`sudo usermod -aG "
            f"docker $USER`, then log in again), {INSTEAD}"
        )
    return f"no Docker engine answers ({text}); start it (`systemctl start docker` or `dockerd`), {INSTEAD}"
