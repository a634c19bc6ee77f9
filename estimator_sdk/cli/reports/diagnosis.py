"""What of the things that jobs need is on this machine, and the command that brings what is missing."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from estimator_container.runtime.errors import ConfigurationError
from estimator_container.worlds.mpi import programs

from ...display.progress import size
from ...errors import EstimatorError, InvalidArgument
from ...values.home import home, jobs_folder, secured

PURPOSES = ("docker", "s3", "sagemaker", "horovod")
"""What a user may need besides MPI jobs on processes of this machine."""
_OPEN_MPI = "4.1"
_LEAST_DISK = 1_000_000_000  # bytes: a small job's logs, code and model
_SECONDS = 30.0  # for a program that says its version


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for."""

    what: str
    is_there: bool
    detail: str
    """The version or place of what is there; what is wrong with what is not."""
    fix: str
    """The command that brings it; empty where it is there."""
    purpose: str | None
    """The one of PURPOSES that needs it; None where every job does."""


def findings() -> Iterator[Finding]:
    """Every thing, one after the other: some take a moment. Makes the state directory."""
    for what, purpose, look in _CHECKS:
        try:
            yield Finding(what, True, look(), "", purpose)
        except _Missing as missing:
            yield Finding(what, False, missing.detail, missing.fix, purpose)


class _Missing(Exception):
    def __init__(self, detail: str, fix: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fix = fix


def _python() -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    if not sys.platform.startswith("linux"):
        what = f"{version} on {sys.platform}, and jobs on processes need Linux"
        raise _Missing(what, "docker run -it python:3.11-slim-bookworm")
    return f"{version}, {sys.executable}"


def _open_mpi() -> str:
    import subprocess

    fix = "pip install 'estimator-sdk[mpi]'"
    try:
        path = programs.find("mpirun")
    except ConfigurationError:
        raise _Missing("mpirun is neither beside this Python nor on PATH", fix) from None
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise _Missing(f"{path} does not say its version: {error}", fix) from None
    version = done.stdout.splitlines()[0] if done.stdout else ""
    if f" {_OPEN_MPI}." not in version:
        raise _Missing(f"{path} is {version or 'of no known version'}, and {_OPEN_MPI} is needed", fix)
    return f"{version.rpartition(' ')[2]}, {path}"


def _package(name: str, fix: str) -> Callable[[], str]:
    def look() -> str:
        from importlib.metadata import PackageNotFoundError, version

        if not _has(name):
            raise _Missing(f"the package {name} is not there", fix)
        try:
            return version(name)
        except PackageNotFoundError:
            return "there"

    return look


def _has(package: str) -> bool:
    """Whether it can be imported; a mere folder of that name, such as one of a checkout, is no package."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None


def _state() -> str:
    folder = _home()
    try:
        secured(jobs_folder())
    except InvalidArgument as error:
        raise _Missing(str(error), "export ESTIMATOR_HOME=$HOME/estimator") from None
    except OSError as error:
        raise _Missing(f"{folder} cannot be made: {error.strerror}", "export ESTIMATOR_HOME=$HOME/estimator") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _Missing(f"{folder} cannot be written by this user", f"sudo chown -R $USER {folder}")
    return str(folder)


def _home() -> Path:
    try:
        return home()
    except EstimatorError as error:
        raise _Missing(str(error), "export ESTIMATOR_HOME=/a/folder/of/yours") from None


def _disk() -> str:
    folder = next(each for each in (_home(), *_home().parents) if os.access(each, os.F_OK))
    free = shutil.disk_usage(folder).free
    if free < _LEAST_DISK:
        detail = f"{size(free)} free in {folder}, and {size(_LEAST_DISK)} are needed"
        raise _Missing(detail, "export ESTIMATOR_HOME=/a/larger/disk")
    return f"{size(free)} free in {folder}"


def _engine() -> str:
    from ...backends.docker import engine

    fix = "apt-get install -y docker.io && systemctl start docker"
    if not _has("docker"):
        raise _Missing(
            "the package docker, which speaks to the engine, is not there", "pip install 'estimator-sdk[docker]'"
        )
    try:
        client = engine.connect()
        with engine.asked_to("say its version"):
            return str(client.version()["Version"])
    except EstimatorError as error:
        in_group = "usermod" in str(error)
        raise _Missing(str(error), "sudo usermod -aG docker $USER" if in_group else fix) from None


def _images() -> str:
    from ...backends.docker import engine
    from ...backends.docker.images import catalogue

    _engine()
    client = engine.connect()
    there = [image.name for image in catalogue.everything() if engine.has_image(client, image.name)]
    if not there:
        raise _Missing("none is built yet; the first job builds the one it needs", "estimator images build mpi")
    return ", ".join(there)


def _region() -> str:
    from ...backends.sagemaker.service import new_session, region_of

    fix = "aws configure set region eu-west-1"
    try:
        region = region_of(new_session())
    except EstimatorError as error:
        raise _Missing(str(error), "pip install 'estimator-sdk[sagemaker]'") from None
    if region is None:
        raise _Missing("no region is set", fix)
    return region


def _credentials() -> str:
    from ...backends.sagemaker.service import new_session

    try:
        session = new_session()
    except EstimatorError as error:
        raise _Missing(str(error), "pip install 'estimator-sdk[sagemaker]'") from None
    from botocore.exceptions import BotoCoreError

    try:
        found = session.get_credentials()
    except BotoCoreError as error:
        raise _Missing(str(error), "aws configure") from None
    if found is None:
        raise _Missing("none are found where AWS's own tools look", "aws configure")
    return f"from {found.method}"


def _horovod() -> str:
    if not _has("horovod"):
        from ...backends.docker.images.context import recipe

        script = Path(recipe()) / "horovod" / "build_horovod.py"
        raise _Missing("the package horovod is not there; our images of frameworks have it", f"python {script}")
    return _package("horovod", "")()


_CHECKS: tuple[tuple[str, str | None, Callable[[], str]], ...] = (
    ("Python", None, _python),
    ("Open MPI", None, _open_mpi),
    ("state directory", None, _state),
    ("free disk", None, _disk),
    ("mpi4py", "horovod", _package("mpi4py", "pip install 'estimator-sdk[mpi]'")),
    ("Horovod", "horovod", _horovod),
    ("Docker engine", "docker", _engine),
    ("images", "docker", _images),
    ("s3 library", "s3", _package("obstore", "pip install 'estimator-sdk[s3]'")),
    ("boto3", "sagemaker", _package("boto3", "pip install 'estimator-sdk[sagemaker]'")),
    ("region", "sagemaker", _region),
    ("credentials", "sagemaker", _credentials),
)
