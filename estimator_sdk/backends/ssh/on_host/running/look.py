"""A look into an image on this machine: a container of it that runs for a moment, as a host of a job would."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import estimator_container

from .....errors import BackendError
from ....docker.images import look_inside
from ....docker.images.look import MODULES, PYTHON
from . import docker_program
from .docker_program import PROGRAM, Mount

_SHOWN = 300  # characters of what an image says instead of an answer


def look(image: str, given: Sequence[str], pulls: bool) -> dict[str, Any] | None:
    """What `look_inside` has found in an image; None if the machine does not have the image and is not to pull it.

    `given` is how the command of a host begins. Raises BackendError for what the machine, or the image, lacks.
    """
    if shutil.which(PROGRAM) is None:
        what = "there is no program docker on the PATH of its shell, which runs images"
        raise BackendError(f"{what}; install Docker there, or leave image_uri out")
    asked = docker_program.ask([PROGRAM, "version", "--format={{.Server.Version}}"])
    if asked.returncode != 0:
        what = f"its user cannot use Docker: {docker_program.said(asked.stderr)}"
        raise BackendError(f"{what}; start the daemon there, or let the user join the group that owns its socket")
    if docker_program.ask([PROGRAM, "image", "inspect", image]).returncode != 0:
        if not pulls:
            return None
        pulled = docker_program.ask([PROGRAM, "pull", "--quiet", image], seconds=None)
        if pulled.returncode != 0:
            what = f"it does not have the image {image}, and cannot pull it: {docker_program.said(pulled.stderr)}"
            raise BackendError(f"{what}; build or load the image there, or name one of a registry that it reaches")
    return _inside(image, given)


def _inside(image: str, given: Sequence[str]) -> dict[str, Any]:
    software = str(Path(estimator_container.__file__).parents[1])
    source = Path(look_inside.__file__).read_text(encoding="utf-8")
    name = f"estimator-look-{os.urandom(8).hex()}"
    argv = (PYTHON, "-c", source, software, *MODULES)
    done = docker_program.ask(docker_program.run(given, image, argv, name, [Mount(software, is_fixed=True)], {}))
    try:
        facts = json.loads(done.stdout.strip().rpartition("\n")[2])
        assert "python" in facts
    except (ValueError, TypeError, AssertionError):
        docker_program.ask(docker_program.remove(name))  # of one that takes too long
        words = docker_program.said(done.stderr)[-_SHOWN:] or f"nothing, and ends with {done.returncode}"
        if "executable file not found" in words:
            what = f"the image {image} has no {PYTHON} on its PATH, which runs the toolkit"
            raise BackendError(f"{what}; add Python 3.9 or newer to it, or choose another image") from None
        raise BackendError(f"a container of the image {image} does not run there: {words}") from None
    return dict(facts)
