"""What of the things that jobs need is on this machine, and the command that brings what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ... import backends
from ...backends.packages import package, version_of
from ...backends.port import Finding, Missing, findings

PURPOSES = (*backends.BUILT_IN, "s3", "horovod")
"""What a user may need; the backends of other packages come to that."""


def every_finding() -> Iterator[Finding]:
    """Every thing, one after the other: some take a moment. Makes the state directory."""
    for name in backends.names():
        try:
            yield from backends.load(name).check()
        except Exception as error:
            if name in backends.BUILT_IN:
                raise
            yield Finding(name, False, f"{type(error).__name__}: {error}", "update or uninstall its package", name)
    yield from findings(
        "horovod", (("mpi4py", package("mpi4py", "pip install 'estimator-sdk[mpi]'")), ("Horovod", _horovod))
    )
    yield from findings("s3", (("s3 library", package("obstore", "pip install 'estimator-sdk[s3]'")),))


def purposes() -> tuple[str, ...]:
    """All that a user may need, the backends of other packages included."""
    return (*PURPOSES, *backends.installed())


def _horovod() -> str:
    from ...backends.docker.images.context import recipe

    found = version_of("horovod")
    if found is None:
        script = Path(recipe()) / "horovod" / "build_horovod.py"
        raise Missing("the package horovod is not installed; our framework images have it", f"python {script}")
    return found
