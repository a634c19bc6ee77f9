"""Both packages as they travel to nodes whose Python has neither: a copy that the nodes share, named by its content."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import estimator_container

from ....plan.plan import Plan
from ....values.home import appearing, home, make_folder, secured

SDK = Path(__file__).parents[3]
_PACKAGES = (SDK, Path(estimator_container.__file__).parent)
_FOLDER = "packages"


def copy() -> Path:
    """Where the copy of these very packages is, or will be: a folder to import them from.

    It changes with any of their files, so a job that waits in the queue runs what it was submitted with.
    """
    return home() / _FOLDER / _digest()


@cache
def _digest() -> str:
    digest = hashlib.sha256()
    for package, file in _files():
        name = f"{package.name}/{file.relative_to(package)}"
        digest.update(f"{len(name)} {name}{file.stat().st_size} ".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def travel_with(plan: Plan) -> bool:
    """Whether hosts of a plan use a copy."""
    return plan.hosts[0].argv[3].startswith(f"{home() / _FOLDER}/")


def make_copy() -> None:
    """Make the copy, unless it is there. Raises OSError, and EstimatorError for a folder that others control."""
    place = copy()
    if place.exists():
        return
    secured(place.parent)
    with appearing(place) as unfinished:
        for package, file in _files():
            to = unfinished / package.name / file.relative_to(package)
            make_folder(to.parent)
            shutil.copyfile(file, to)


def _files() -> Iterator[tuple[Path, Path]]:
    for package in _PACKAGES:
        for folder, below, names in os.walk(package):
            below[:] = sorted(name for name in below if name != "__pycache__")
            for name in sorted(names):
                yield package, Path(folder, name)
