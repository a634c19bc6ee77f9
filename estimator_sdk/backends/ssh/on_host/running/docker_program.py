"""The program `docker` of a machine: what it is told, and what it says against that."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from estimator_container.runtime import machine

from ....docker.container import home_of_user, most_allowed

PROGRAM = "docker"
SECONDS = 60.0
"""That it may take to answer, but for bringing an image."""
_NO_ANSWER, _NOT_RUN = 124, 127  # of a command that took longer or cannot be run, as timeout(1) says


class Mount(NamedTuple):
    """A folder of the machine that a container has under the same path."""

    path: str
    is_fixed: bool = False
    """Whether nothing there can be changed."""


def run(
    given: Sequence[str],
    image: str,
    argv: Sequence[str],
    name: str,
    mounts: Iterable[Mount],
    variables: Mapping[str, str],
) -> list[str]:
    """The command that runs a program of an image as this user; `given` is how it begins, from the plan.

    The image's ENTRYPOINT is not run. Limits are those that this process could have.
    """
    program, *arguments = argv
    return [
        *given,
        f"--name={name}",
        f"--user={os.getuid()}:{os.getgid()}",
        "--workdir=/",
        f"--shm-size={machine.memory_bytes() // 2}",  # an upper bound, for ranks and data loaders
        *(f"--ulimit={kind}={limit}:{limit}" for kind, limit in most_allowed().items()),
        *(f"--mount={_csv(each)}" for each in mounts),
        *(f"--env={variable}={value}" for variable, value in {**home_of_user(), **variables}.items()),
        f"--entrypoint={program}",
        image,
        *arguments,
    ]


def remove(name: str) -> list[str]:
    """The command that ends and removes a container, whatever state it is in."""
    return [PROGRAM, "rm", "--force", "--volumes", name]


def ask(argv: Sequence[str], seconds: float | None = SECONDS) -> subprocess.CompletedProcess[str]:
    """What a command of it says. One that cannot be started, or does not end in time, says so on its standard error."""
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, _NO_ANSWER, "", f"it does not answer within {seconds:g} s")
    except OSError as error:
        return subprocess.CompletedProcess(argv, _NOT_RUN, "", str(error))


def said(stderr: str) -> str:
    """What Docker itself says, in one line, of all that `docker run` wrote: the rest is of the container, or advice."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith("See '")]
    own = [line.removeprefix("docker: ") for line in lines if line.startswith("docker: ")]
    return " ".join(own[-1:] or lines[-5:]).removeprefix("Error response from daemon: ")


def _csv(mount: Mount) -> str:
    """As `--mount` reads it, which splits it as a line of CSV."""
    fields = ["type=bind", f"source={mount.path}", f"target={mount.path}", *(["readonly"] if mount.is_fixed else [])]
    return ",".join('"{}"'.format(field.replace('"', '""')) for field in fields)
