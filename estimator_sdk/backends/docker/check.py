"""What jobs on containers need: an engine, and images."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...errors import EstimatorError
from ..packages import is_installed
from ..port import Check, Missing
from . import engine
from .images import catalogue

if TYPE_CHECKING:
    from docker import DockerClient

_START = "apt-get install -y docker.io && systemctl start docker"
_FIXES = {"usermod": "sudo usermod -aG docker $USER", "answered nothing": "journalctl --unit docker"}
"""What an engine that is there says that does not let itself be used, and what helps."""


def _asked(question: Callable[[DockerClient], str]) -> str:
    if not is_installed("docker"):
        raise Missing(
            "the package docker, which talks to the engine, is not installed", "pip install 'estimator-sdk[docker]'"
        )
    try:
        return question(engine.connect())
    except EstimatorError as error:
        said = str(error)
        fix = next((fix for words, fix in _FIXES.items() if words in said), _START)
        raise Missing(said, fix) from None


def _version(client: DockerClient) -> str:
    with engine.asked_to("report its version"):
        return str(client.version()["Version"])


def _images(client: DockerClient) -> str:
    there = [image.name for image in catalogue.everything() if engine.has_image(client, image.name)]
    if not there:
        raise Missing("none has been built yet; the first job builds the one it needs", "estimator images build mpi")
    return ", ".join(there)


CHECKS: tuple[Check, ...] = (
    ("Docker engine", partial(_asked, _version)),
    ("images", partial(_asked, _images)),
)
