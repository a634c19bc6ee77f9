"""Have the engine build an image, once, and show its progress."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from ....errors import BackendError
from ....values.home import CACHE_VARIABLE, cache_folder, secured, temporary_folder, writing
from .. import engine
from . import base as bases
from . import catalogue, context
from .catalogue import Image

if TYPE_CHECKING:
    from docker import DockerClient

_NOISE = re.compile(
    r" ---> |Removing intermediate container |\[Warning\] One or more build-args|debconf: delaying|\s*$"
)
_COLOUR = re.compile(r"\x1b\[\d*m")
_LAST_LINES = 15  # of a failed build, in the error
_DURATION = {"mpi": "about a minute", "framework": "5 to 10 minutes on two cores, because Horovod is compiled"}


def ensure(client: DockerClient, name: str, out: TextIO) -> None:
    """Build an image of ours unless the engine has it, with the toolkit of today; other images are left alone.

    A change of the toolkit replaces the last layer, which takes seconds. Raises BackendError.
    """
    image = catalogue.by_name(name)
    if image is not None:
        build(client, image, name, None, out)


def build(client: DockerClient, image: Image, name: str, base: str | None, out: TextIO) -> None:
    """Build an image under a name, on a base or on the one that can be had, unless that is done already.

    Whoever comes while another process builds it waits, and finds it. Raises BackendError.
    """
    contents = context.files(image)
    digest = context.digest(image, contents)
    if _is_done(client, name, digest, base):
        return
    with _lock(name, out):
        if _is_done(client, name, digest, base):
            return
        chosen = base or bases.choose(client, out)
        again = engine.has_image(client, name)
        how_long = "the toolkit has changed" if again else f"the first time it takes {_DURATION[image.target]}"
        print(f"building {name}: {how_long}", file=out, flush=True)
        written = partial(context.write, image, contents)
        with temporary_folder(f"what {name} is built from", written) as folder, engine.asked_to(f"build {name}"):
            replaced = client.images.get(name).id if again else None
            _build(client, image, name, chosen, digest, folder, out)
            _remove(client, replaced)
        print(f"{name} is built", file=out, flush=True)


def _is_done(client: DockerClient, name: str, digest: str, base: str | None) -> bool:
    # On a base that the caller names, the engine's own cache knows what is to be done.
    return base is None and engine.toolkit_of(client, name) == digest


def _remove(client: DockerClient, image_id: str | None) -> None:
    """Remove an image that has lost its only name, unless a container still runs it."""
    import docker

    if image_id is not None and not client.images.get(image_id).tags:
        with contextlib.suppress(docker.errors.APIError):
            client.images.remove(image_id)


@contextlib.contextmanager
def _lock(name: str, out: TextIO) -> Iterator[None]:
    with writing("the lock of an image", CACHE_VARIABLE):
        cache = secured(secured(cache_folder(), CACHE_VARIABLE) / "images", CACHE_VARIABLE)
        path = cache / f"{name.replace('/', '-').replace(':', '-')}.lock"
        lock = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another process, which is building {name}", file=out, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _build(client: DockerClient, image: Image, name: str, base: str, digest: str, folder: str, out: TextIO) -> None:
    import docker

    try:
        said = client.api.build(
            path=folder,
            tag=name,
            target=image.target,
            buildargs={"BASE": base, "FRAMEWORK": " ".join(image.packages)},
            labels={engine.TOOLKIT_LABEL: digest},
            network_mode="host",  # each step has the same way out as this machine
            rm=True,
            forcerm=True,
            decode=True,
            timeout=None,
        )
        _show(name, said, out)
    except docker.errors.DockerException as error:
        raise BackendError(f"{name} could not be built: {error}") from None


def _show(name: str, said: Iterable[Mapping[str, Any]], out: TextIO) -> None:
    lines: list[str] = []
    for message in said:
        if "error" in message:
            tail = "\n".join(lines[-_LAST_LINES:])
            raise BackendError(f"{name} could not be built: {message['error']}; the end of its output:\n{tail}")
        for line in _COLOUR.sub("", str(message.get("stream", ""))).splitlines():
            if not _NOISE.match(line):
                lines.append(line)
                print(f"  {line}", file=out, flush=True)
