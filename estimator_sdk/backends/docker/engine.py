"""Reach the Docker engine, and say in one sentence why that fails."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ...errors import BackendError, InvalidArgument

if TYPE_CHECKING:
    from docker import APIClient, DockerClient

JOB_LABEL = "estimator.job"
OWNER_LABEL = "estimator.supervisor"
"""Tells what one supervisor has made from what one of a later job of the same name has."""
"""On every container and network of a job: its name."""
TOOLKIT_LABEL = "estimator.toolkit"
"""On images that hold our toolkit: it takes secrets from files and needs no root."""
GIB = 1 << 30
ANSWER_SECONDS = 120
"""How long the engine may take for any answer: twice what the Docker SDK gives it, for a disk may be busy."""
JOB_SECONDS = 300
"""The same for a job that runs: its hosts wait as long for each other (`DEFAULT_WORLD_TIMEOUT`)."""
DETACH_SECONDS, DETACH_LOOK_SECONDS = 10.0, 0.02
"""How long the engine may take to take a container that is gone off its network, and between looks."""
_PULLABLE = re.compile(r"[a-z0-9][^\s]*")
"""What a reference to an image begins with ("reference" in the OCI distribution specification), in one word."""
_SILENT = re.compile(r"Read timed out\. \(read timeout=([0-9.]+)\)")
"""What urllib3 says of an engine that took a request and does not answer."""
INSTEAD = "or use backend='process', which needs no engine"


class ImageDescription(NamedTuple):
    """What the engine knows of an image."""

    identity: str
    """Its id, which no other image has."""
    labels: Mapping[str, str]
    variables: Mapping[str, str]
    """Those that its containers have."""
    has_entrypoint: bool

    @property
    def has_toolkit(self) -> bool:
        """Whether it holds our toolkit, of whatever version."""
        return bool(self.labels.get(TOOLKIT_LABEL))


def connect(seconds: float = ANSWER_SECONDS) -> DockerClient:
    """A client of the engine that DOCKER_HOST names, else of the local one; it waits so long for an answer.

    Raises BackendError.
    """
    try:
        import docker
    except ImportError:
        raise BackendError(
            f"backend 'docker' needs the package docker: pip install 'estimator-sdk[docker]', {INSTEAD}"
        ) from None
    try:
        return docker.from_env(timeout=seconds)
    except (docker.errors.DockerException, ValueError) as error:  # ValueError: of an address, such as a port of 99999
        raise BackendError(_why(error)) from None


@contextmanager
def asked_to(what: str) -> Iterator[None]:
    """Around what a client asks of the engine. Raises BackendError where that does not answer, or does not do it."""
    import docker
    import requests

    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise BackendError(
            f"the Docker engine could not {what}: {words(error)}; see its log, or restart it, {INSTEAD}"
        ) from None


def require_image(client: DockerClient, image: str) -> ImageDescription:
    """The image as the engine describes it. Raises InvalidArgument when the engine does not have it."""
    described = _described(client, image)
    if described is None:
        pull = f"get it with `docker pull {image}`, or " if _PULLABLE.fullmatch(image) else ""
        raise InvalidArgument(
            "image_uri",
            f"image_uri {image!r} is not an image of the Docker engine; {pull}choose one of those that "
            "`estimator images ls` lists",
        )
    return described


def has_image(client: DockerClient, image: str) -> bool:
    """Whether the engine has the image."""
    return _described(client, image) is not None


def require_room(client: DockerClient, cpus: float | None, memory: float | None) -> None:
    """Raises InvalidArgument when a host is to have more CPUs, or GiB of memory, than the engine's machine."""
    if cpus is None and memory is None:
        return
    with asked_to("report the CPUs and memory of its machine"):
        machine = client.info()
    for name, wanted, there in (("cpus", cpus, machine["NCPU"]), ("memory", memory, machine["MemTotal"] / GIB)):
        if wanted is not None and wanted > there:
            raise InvalidArgument(
                name, f"{name}={wanted:g} is more than the {there:.4g} that the engine's machine has; lower it"
            )


def has_toolkit(client: DockerClient, image: str) -> bool:
    """Whether the image holds our toolkit."""
    return toolkit_of(client, image) is not None


def has_entrypoint(client: DockerClient, image: str) -> bool:
    """Whether the image says what its containers run before what they are told to."""
    described = _described(client, image)
    return described is not None and described.has_entrypoint


def toolkit_of(client: DockerClient, image: str) -> str | None:
    """The digest of the toolkit that an image holds; None for an image without ours, or none at all."""
    described = _described(client, image)
    return described.labels.get(TOOLKIT_LABEL) if described is not None else None


def _described(client: DockerClient, image: str) -> ImageDescription | None:
    """None where the engine does not have the image."""
    import docker

    with asked_to(f"describe the image {image}"):
        try:
            attributes = client.images.get(image).attrs
        except (docker.errors.ImageNotFound, docker.errors.NullResource):
            return None
        except docker.errors.APIError as error:
            if error.status_code not in (400, 404):  # what no image can be called, such as `..`
                raise
            return None
    config = attributes.get("Config") or {}
    variables = dict(each.partition("=")[::2] for each in config.get("Env") or ())
    return ImageDescription(attributes["Id"], config.get("Labels") or {}, variables, bool(config.get("Entrypoint")))


def remove_container(api: APIClient, identity: str) -> None:
    """End and remove a container; nothing happens if somebody else has, or does at this moment."""
    import docker

    try:
        api.remove_container(identity, force=True, v=True)
    except docker.errors.APIError as error:
        if error.status_code not in (404, 409):
            raise


def remove_network(api: APIClient, identity: str) -> None:
    """Remove a network; nothing happens if it is gone.

    The engine may say that a container is gone, and that its network still has it ("active endpoints").
    """
    import docker

    deadline = time.monotonic() + DETACH_SECONDS
    while True:
        asked = time.monotonic()
        try:
            api.remove_network(identity)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if error.status_code != 403 or asked > deadline:
                raise
            time.sleep(DETACH_LOOK_SECONDS)  # the event that tells of it may have passed already
        else:
            return


def remove_job(client: DockerClient, job_name: str, owner: str, on_removed: Callable[[str], object]) -> None:
    """End and remove every container and network that a supervisor made for a job, whatever state they are in.

    `on_removed` is called with the name of each.
    """
    chosen = {"label": [f"{JOB_LABEL}={job_name}", f"{OWNER_LABEL}={owner}"]}
    for container in client.containers.list(all=True, filters=chosen, ignore_removed=True):
        remove_container(client.api, container.id)
        on_removed(container.name)
    for network in client.networks.list(filters=chosen):
        remove_network(client.api, network.id)
        on_removed(network.name)


def try_to_remove_job(job_name: str, owner: str, on_removed: Callable[[str], object]) -> bool:
    """As `remove_job`, on the engine that there is. False when it does not answer, or not with what was asked."""
    import docker

    try:
        remove_job(connect(), job_name, owner, on_removed)
    except (BackendError, docker.errors.DockerException, OSError):
        return False
    return True


def words(error: Exception) -> str:
    """What the engine itself said, without the request that it answered, or has not answered."""
    text = str(getattr(error, "explanation", None) or error).strip()
    silent = _SILENT.search(text)
    return f"it has answered nothing for {silent[1]} s, as where it waits for a disk" if silent else text


def _why(error: Exception) -> str:
    text = words(error)
    if "Permission denied" in text:
        return (
            "this user may not open the Docker engine's socket; join the group that owns it (`sudo usermod -aG "
            f"docker $USER`, then log in again), {INSTEAD}"
        )
    given = os.environ.get("DOCKER_HOST")
    if _SILENT.search(str(error)):
        at = f" at DOCKER_HOST={given}" if given else ""
        return f"the Docker engine{at} does not answer: {text}; see its log, or restart it, {INSTEAD}"
    if given:
        return f"no Docker engine answers at DOCKER_HOST={given} ({text}); start it, or fix DOCKER_HOST, {INSTEAD}"
    return f"no Docker engine answers ({text}); start it (`systemctl start docker` or `dockerd`), {INSTEAD}"
