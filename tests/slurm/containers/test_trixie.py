"""Slurm 24.11, of Debian 13: the tests of the quick lane, with the Python and the environment of this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from . import image

pytestmark = pytest.mark.long
CHOSEN = "slurm and not containers"
"""The tests of the backend, and one test of each law, as in any other run."""
NOT_OF_SLURM = "tests/conformance/test_hang.py"
"""What no version of Slurm changes, and what has seconds to notice in which other tests keep the machine busy."""
WITH_OPEN_MPI_4 = "tests/slurm/test_images.py::test_hosts_run_in_the_image[mpi]"
"""The image of that test is what the system has installed, and Debian 13 has no Open MPI but 5."""
SHOWN = 12000  # characters of what the tests say, where they fail


@pytest.mark.parametrize("suite", ["tests/slurm", "tests/conformance"])
def test_the_tests_of_every_run_pass_on_slurm_24(suite: str, tmp_path: Path):
    places = {image.ROOT, *(Path(each).resolve() for each in (sys.prefix, sys.base_prefix))}
    places |= {link.resolve() for link in image.ROOT.glob(".venv*")}
    mounts = [f"--volume={place}:{place}" for place in sorted(places)]
    rights = ["--cap-add=SYS_PTRACE", "--cap-add=SYS_ADMIN", "--security-opt=seccomp=unconfined"]  # for Charliecloud
    engine = ["docker", "run", "--rm", "--init", *rights, *mounts, "--workdir", str(image.ROOT)]
    tests = [
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        "-m",
        "not long and not alone",
        "-k",
        CHOSEN,
        "--ignore",
        NOT_OF_SLURM,
        "--deselect",
        WITH_OPEN_MPI_4,
    ]
    variables = [
        f"--env=PATH={Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
        "--env=HOME=/root",
        "--env=PYTHONPATH",
    ]
    command = [*engine, *variables, image.of_trixie(), sys.executable, *tests, suite]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-SHOWN:] + done.stderr[-SHOWN:]
    assert "passed" in done.stdout
