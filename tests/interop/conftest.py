"""What the tests stand on: our image, one of the package sagemaker-training, and Open MPI as Debian ships it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images import build, catalogue
from tests.interop.sagemaker_training import image as theirs


@pytest.fixture(scope="session")
def image() -> str:
    """Our image without a framework, with the toolkit of this checkout."""
    build.ensure(engine.connect(), catalogue.MPI.name, sys.stderr)
    return catalogue.MPI.name


@pytest.fixture(scope="session")
def their_image() -> str:
    return theirs.build()


FOLDER = Path(__file__).parents[2] / ".venv-debian-mpi"


@pytest.fixture(scope="session")
def debian_python() -> Path:
    """The Python of an environment without Open MPI of its own, so that the system's is found."""
    python = FOLDER / "bin" / "python"
    if not python.exists() or not Path("/usr/bin/mpirun").exists():
        raise RuntimeError(f"{FOLDER} or Debian's Open MPI is missing: run scripts/setup tests")
    assert not (FOLDER / "bin" / "mpirun").exists()
    return python
