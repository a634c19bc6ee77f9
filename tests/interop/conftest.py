"""What the tests stand on: our image, one of the package sagemaker-training, and Open MPI as Debian ships it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from estimator_sdk.docker import engine
from estimator_sdk.images import base as bases
from estimator_sdk.images import build, catalogue


@pytest.fixture(scope="session")
def image() -> str:
    """Our image without a framework, with the toolkit of this checkout."""
    build.ensure(engine.connect(), catalogue.MPI.name, sys.stderr)
    return catalogue.MPI.name


THEIRS = Path(__file__).parent / "sagemaker_training"


@pytest.fixture(scope="session")
def their_image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Built on the base that ours is built on."""
    tag = "estimator/sagemaker-training:5.1.4"
    context = tmp_path_factory.mktemp("image") / "context"
    shutil.copytree(THEIRS, context)
    (context / "ca").mkdir()
    certificates = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if certificates and Path(certificates).is_file():
        shutil.copy(certificates, context / "ca" / "bundle.pem")
    base = bases.choose(engine.connect(), sys.stderr)
    command = ["docker", "build", "--network", "host", "--build-arg", f"BASE={base}", "--tag", tag, str(context)]
    subprocess.run(command, check=True, env={**os.environ, "DOCKER_BUILDKIT": "0"})
    return tag


ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-debian-mpi"


@pytest.fixture(scope="session")
def debian_python() -> Path:
    """The Python of an environment without Open MPI of its own, so that the system's is found.

    It is made once and kept beside the project's own environment. Debian's `openmpi-bin` must be installed:
    without it the tests fail.
    """
    python = FOLDER / "bin" / "python"
    done = FOLDER / "complete"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
        packages = ["-c", "constraints.txt", "-e", "./container", "-e", ".", "mpi4py", "numpy", "scikit-learn"]
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], cwd=ROOT, check=True)
        done.touch()
    assert not (FOLDER / "bin" / "mpirun").exists()
    assert Path("/usr/bin/mpirun").exists(), "install Debian's Open MPI: apt-get install -y openmpi-bin"
    return python
