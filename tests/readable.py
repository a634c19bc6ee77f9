"""Copies of packages that every user can read: a checkout may lie where only its owner can enter."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


@contextmanager
def copies(*packages: ModuleType) -> Iterator[Path]:
    """The folder of the copies, for a search path of modules; it is removed at the end."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own folders are closed to other users
        for package in packages:
            assert package.__file__ is not None
            without = shutil.ignore_patterns("__pycache__", "vendor")
            shutil.copytree(Path(package.__file__).parent, Path(folder, package.__name__), ignore=without)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        yield Path(folder)
