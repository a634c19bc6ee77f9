"""The image to build on: pulled by name, or made from Debian's packages where nothing can be pulled."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, TextIO

from ....errors import BackendError
from .. import engine
from .catalogue import PULLED

if TYPE_CHECKING:
    from docker import DockerClient

MADE = "estimator/bookworm:min"
"""A minimal Debian 12, whose Python is 3.11."""
_NOISE = re.compile(r"I: (Retrieving|Validating|Extracting|Unpacking|Configuring|Chosen|Checking|Resolving|Found) ")


def choose(client: DockerClient, out: TextIO) -> str:
    """A base that the engine has; else the one that can be pulled; else one that is made. Raises BackendError."""
    for name in (PULLED, MADE):
        if engine.has_image(client, name):
            return name
    refused = _pull(client, out)
    if refused is None:
        return PULLED
    if os.getuid() == 0 and shutil.which("debootstrap"):
        print(f"{PULLED} cannot be pulled, so the base is made from Debian's packages", file=out, flush=True)
        return make(client, out)
    raise BackendError(
        f"the base image {PULLED} cannot be pulled ({refused}); pull another one with Python 3.11 and name it with "
        "`estimator images build --base NAME …`, or make one from Debian's packages, as root: "
        "`apt-get install -y debootstrap`, then `estimator images build --debian-base …`"
    )


def make(client: DockerClient, out: TextIO) -> str:
    """A minimal Debian 12 by debootstrap, unless there is one from an earlier time. Raises BackendError."""
    if engine.has_image(client, MADE):
        return MADE
    if os.getuid() != 0 or not shutil.which("debootstrap"):
        raise BackendError("making a base image needs root and debootstrap: apt-get install -y debootstrap")
    with tempfile.TemporaryDirectory() as folder:
        root = f"{folder}/root"
        _run(["debootstrap", "--variant=minbase", "bookworm", root], out)
        _run(["tar", "-C", root, "-cf", f"{folder}/root.tar", "."], out)
        repository, _, tag = MADE.partition(":")
        with engine.asked_to(f"import {MADE}"):
            client.api.import_image_from_file(f"{folder}/root.tar", repository=repository, tag=tag)
    return MADE


def _pull(client: DockerClient, out: TextIO) -> str | None:
    """Why the base could not be pulled; None when it was."""
    import docker
    import requests

    print(f"pulling {PULLED}", file=out, flush=True)
    try:
        client.images.pull(PULLED)
    except (docker.errors.DockerException, requests.RequestException) as error:
        return engine.words(error)
    return None


def _run(command: list[str], out: TextIO) -> None:
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert child.stdout is not None
    last = ""
    for last in child.stdout:
        if not _NOISE.match(last):
            print(f"  {last.rstrip()}", file=out, flush=True)
    if child.wait() != 0:
        raise BackendError(f"{command[0]} ended with exit code {child.returncode}: {last.strip()}")
