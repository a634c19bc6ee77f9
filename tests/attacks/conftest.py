"""What the attacks share: a home of their own, jobs on the embedded backend, and another user of the machine."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import estimator_container
import pytest

import estimator_sdk
from tests import readable
from tests.conformance.conftest import Script, home, out, script  # noqa: F401 - fixtures, used by their names
from tests.waiting import SECONDS

STRANGER = 65534
"""The user `nobody`, who owns nothing here and has no rights."""


@pytest.fixture(scope="session")
def backend() -> str:
    return "process"


@pytest.fixture(scope="session")
def where(backend: str) -> dict[str, str]:
    return {"backend": backend}


@pytest.fixture
def as_stranger() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a Python program, with arguments, as another user of this machine. Needs root, as CI has it."""
    assert os.geteuid() == 0, "another user's part can only be played by root: run the attacks as root"

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/usr/bin/python3", "-I", "-S", "-c", program, *arguments],
            user=STRANGER,
            group=STRANGER,
            extra_groups=[],
            env={},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def packages() -> Iterator[list[str]]:
    """Where another user can import both packages from."""
    with readable.copies(estimator_sdk, estimator_container) as folder:
        yield [str(folder)]


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder like `tmp_path` to which another user has the way, and which that one can look into."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
