"""Which packages this Python environment has."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from .port import Missing

CLIENT_OF_STORES = ("obstore", "typing_extensions")
"""The client of s3:// stores, and what it needs."""


def is_installed(name: str) -> bool:
    """Whether a package can be imported; a mere folder of that name, such as one in a checkout, does not count."""
    spec = find_spec(name)
    return spec is not None and spec.origin is not None


def version_of(name: str) -> str | None:
    """A package's version, or `there` if it has none; None if it cannot be imported."""
    from importlib.metadata import PackageNotFoundError, version

    if not is_installed(name):
        return None
    try:
        return version(name)
    except PackageNotFoundError:
        return "there"


def package(name: str, fix: str) -> Callable[[], str]:
    """What looks for a package, for a `Check`; `fix` installs it."""

    def look() -> str:
        found = version_of(name)
        if found is None:
            raise Missing(f"the package {name} is not installed", fix)
        return found

    return look


def files_of(*packages: str) -> dict[str, Path]:
    """The modules of packages, by their names below a folder to import them from; of one that is missing, none."""
    found = {}
    for package in packages:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        origin = Path(spec.origin)
        if spec.submodule_search_locations is None:
            found[origin.name] = origin
            continue
        for path in origin.parent.rglob("*"):
            if path.suffix in (".py", ".so"):
                found[f"{package}/{path.relative_to(origin.parent)}"] = path
    return found
