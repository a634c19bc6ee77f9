"""Which packages this Python environment has."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from .port import Missing


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
