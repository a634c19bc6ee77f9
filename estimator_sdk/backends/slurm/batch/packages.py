"""Both packages as they travel to nodes whose Python has neither: a copy that the nodes share, named by its content."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import estimator_container

from ....plan.plan import Plan
from ....values.home import appearing, home, secured
from ...packages import copy_files, digest_of

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
    return digest_of(_files())


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
        copy_files(_files(), unfinished)


def _files() -> dict[str, Path]:
    return {
        str(file.relative_to(package.parent)): file
        for package in _PACKAGES
        for file in package.rglob("*")
        if file.parent.name != "__pycache__" and file.is_file()
    }
