"""What the tests stand on: our image, one of the package sagemaker-training, and Open MPI as Debian ships it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from estimator_sdk.docker import engine
from estimator_sdk.images import build, catalogue
from tests.interop.sagemaker_training import image as theirs


@pytest.fixture(scope="session")
def image() -> str:
    """Our image without a framework, with the toolkit of this checkout."""
    build.ensure(engine.connect(), catalogue.MPI.name, sys.stderr)
    return catalogue.MPI.name


@pytest.fixture(scope="session")
def their_image() -> str:
    return theirs.build()


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
