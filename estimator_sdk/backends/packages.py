"""Which packages this Python environment has."""

from __future__ import annotations

from importlib.util import find_spec


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
