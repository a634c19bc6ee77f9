"""What jobs on containers need: an engine, and images."""

from __future__ import annotations

from ...errors import EstimatorError
from ..packages import is_installed
from ..port import Check, Missing
from . import engine
from .images import catalogue


def _engine() -> str:
    fix = "apt-get install -y docker.io && systemctl start docker"
    if not is_installed("docker"):
        raise Missing(
            "the package docker, which talks to the engine, is not installed", "pip install 'estimator-sdk[docker]'"
        )
    try:
        client = engine.connect()
        with engine.asked_to("report its version"):
            return str(client.version()["Version"])
    except EstimatorError as error:
        in_group = "usermod" in str(error)
        raise Missing(str(error), "sudo usermod -aG docker $USER" if in_group else fix) from None


def _images() -> str:
    _engine()
    client = engine.connect()
    there = [image.name for image in catalogue.everything() if engine.has_image(client, image.name)]
    if not there:
        raise Missing("none has been built yet; the first job builds the one it needs", "estimator images build mpi")
    return ", ".join(there)


CHECKS: tuple[Check, ...] = (("Docker engine", _engine), ("images", _images))
