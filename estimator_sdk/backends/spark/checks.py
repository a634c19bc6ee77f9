"""What a Spark session needs on the machine of its driver."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from pathlib import Path

from ..port import Check, Missing


def _pyspark() -> str:
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise Missing("pyspark is not installed", "pip install 'estimator-sdk[spark]'") from None


def _java() -> str:
    """As pyspark looks for it."""
    home = os.environ.get("JAVA_HOME")
    name = str(Path(home, "bin", "java")) if home else "java"
    found = shutil.which(name)
    if found is None:
        where = f"JAVA_HOME is {home}, but {name} is no program" if home else "there is no program java on PATH"
        raise Missing(
            where, "unset JAVA_HOME" if home and shutil.which("java") else "apt-get install default-jre-headless"
        )
    return found


CHECKS: tuple[Check, ...] = (("pyspark", _pyspark), ("Java", _java))
