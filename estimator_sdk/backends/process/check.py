"""What jobs on processes need of this machine, and where it comes from."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from estimator_container.runtime.errors import ConfigurationError
from estimator_container.worlds.mpi import programs

from ...errors import EstimatorError, InvalidArgument
from ...values.home import home, jobs_folder, secured
from ...values.naming import size
from ..port import Check, Missing

_OPEN_MPI = "4.1"
_LEAST_DISK = 1_000_000_000  # bytes: a small job's logs, code and model
_SECONDS = 30.0  # for a program that says its version


def _python() -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    if not sys.platform.startswith("linux"):
        what = f"{version} on {sys.platform}, but jobs on processes need Linux"
        raise Missing(what, "docker run -it python:3.11-slim-bookworm")
    return f"{version}, {sys.executable}"


def _open_mpi() -> str:
    import subprocess

    fix = "pip install 'estimator-sdk[mpi]'"
    try:
        path = programs.find("mpirun")
    except ConfigurationError:
        raise Missing("mpirun is neither beside this Python nor on PATH", fix) from None
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Missing(f"{path} does not report its version: {error}", fix) from None
    version = done.stdout.splitlines()[0] if done.stdout else ""
    if f" {_OPEN_MPI}." not in version:
        raise Missing(f"{path} is {version or 'of unknown version'}, but {_OPEN_MPI} is needed", fix)
    return f"{version.rpartition(' ')[2]}, {path}"


def _state() -> str:
    folder = _home()
    try:
        secured(jobs_folder())
    except InvalidArgument as error:
        raise Missing(str(error), "export ESTIMATOR_HOME=$HOME/estimator") from None
    except OSError as error:
        raise Missing(f"cannot create {folder}: {error.strerror}", "export ESTIMATOR_HOME=$HOME/estimator") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Missing(f"this user cannot write to {folder}", f"sudo chown -R $USER {folder}")
    return str(folder)


def _home() -> Path:
    try:
        return home()
    except EstimatorError as error:
        raise Missing(str(error), "export ESTIMATOR_HOME=/a/folder/of/yours") from None


def _disk() -> str:
    folder = next(each for each in (_home(), *_home().parents) if os.access(each, os.F_OK))
    free = shutil.disk_usage(folder).free
    if free < _LEAST_DISK:
        detail = f"{size(free)} free in {folder}, but {size(_LEAST_DISK)} is needed"
        raise Missing(detail, "export ESTIMATOR_HOME=/a/larger/disk")
    return f"{size(free)} free in {folder}"


CHECKS: tuple[Check, ...] = (
    ("Python", _python),
    ("Open MPI", _open_mpi),
    ("state directory", _state),
    ("free disk", _disk),
)
