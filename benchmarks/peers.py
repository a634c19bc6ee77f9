"""Other people's programs that run beside: where each is looked for, and which version was found."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .harness import ROOT

TOOLKIT_IMAGE = "estimator/sagemaker-training:5.1.4"
SAGEMAKER = ROOT / ".venv-sagemaker" / "bin" / "python"
PEERS_FOLDER = ROOT / ".venv-peers" / "bin"
CONSOLES_FOLDER = ROOT / ".venv-consoles" / "bin"
KERAS_2_FOLDER = ROOT / ".venv-keras-2"
"""Keras 2 for this environment's TensorFlow, apart from it: with it in there, TensorFlow would look for it first."""


@dataclass(frozen=True)
class Peer:
    """A program, by the name that `--without-peer` takes."""

    what: str
    version: Callable[[], str]
    """Raises OSError or CalledProcessError where it is missing."""


def said(*argv: str | Path) -> str:
    """The first version number that a command prints."""
    done = subprocess.run([str(each) for each in argv], check=True, capture_output=True, text=True, timeout=120)
    found = re.search(r"\d+(\.\d+)+[\w.+-]*", done.stdout + done.stderr)
    return found.group() if found else "?"


def of_package(python: Path, package: str) -> str:
    return said(python, "-c", f"from importlib.metadata import version; print(version({package!r}))")


def of_image() -> str:
    subprocess.run(["docker", "image", "inspect", TOOLKIT_IMAGE], check=True, capture_output=True)
    return TOOLKIT_IMAGE.partition(":")[2]


def sshd() -> str:
    """The path of the server, which is not on everybody's PATH. Raises FileNotFoundError."""
    found = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        raise FileNotFoundError("sshd")
    return found


def horovodrun() -> str:
    return str(Path(sys.executable).parent / "horovodrun")


def keras_2() -> dict[str, str]:
    """The variables of a program that is to have Keras 2."""
    return {"PYTHONPATH": str(KERAS_2_FOLDER), "TF_USE_LEGACY_KERAS": "1"}


def of_keras_2() -> str:
    found = next(KERAS_2_FOLDER.glob("tf_keras-*.dist-info"), None)
    if found is None:
        raise FileNotFoundError(KERAS_2_FOLDER)
    return found.stem.partition("-")[2]


PEERS = {
    "sagemaker": Peer("SageMaker Python SDK v2, local mode", lambda: of_package(SAGEMAKER, "sagemaker")),
    "docker-compose": Peer("which that local mode runs", lambda: said("docker-compose", "version", "--short")),
    "sagemaker-training": Peer("an image with that toolkit, its sshd and Open MPI", of_image),
    "horovodrun": Peer("Horovod's launcher", lambda: of_package(Path(sys.executable), "horovod")),
    "ssh": Peer("OpenSSH, for mpirun's own way to other hosts", lambda: said(sshd(), "-V", "-f", "/dev/null")),
    "rsync": Peer("rsync, for copying to other hosts", lambda: said("rsync", "--version")),
    "s5cmd": Peer("s5cmd", lambda: said(PEERS_FOLDER / "s5cmd", "version")),
    "rclone": Peer("rclone", lambda: said("rclone", "version")),
    "keras-2": Peer("Keras 2, which Horovod was written for", of_keras_2),
    "submitit": Peer("submitit", lambda: of_package(PEERS_FOLDER / "python", "submitit")),
    "mlflow": Peer("MLflow's server and page", lambda: of_package(CONSOLES_FOLDER / "python", "mlflow")),
    "tensorboard": Peer("TensorBoard", lambda: of_package(CONSOLES_FOLDER / "python", "tensorboard")),
    "boto3-crt": Peer("boto3 with the AWS CRT", lambda: of_package(PEERS_FOLDER / "python", "awscrt")),
}


def versions(names: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The versions of the peers that are there, and the names of those that are not."""
    found, missing = dict[str, str](), list[str]()
    for name in names:
        try:
            found[name] = PEERS[name].version()
        except (OSError, subprocess.CalledProcessError):
            missing.append(name)
    return found, missing
