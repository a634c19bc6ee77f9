"""What a job on executors may ask for, and what a Spark session needs on the machine of its driver."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InvalidArgument
from ...spec import instances
from ..port import Check, Missing
from ..ssh.checks import check_elsewhere

if TYPE_CHECKING:
    from ...plan.plan import Plan
    from ...spec.job_document import JobDocument


def check(spec: JobDocument, plan: Plan) -> None:
    """Raises InvalidArgument for what hosts on executors cannot do."""
    if plan.instance_type not in (*instances.LOCAL, *instances.ON_EXECUTORS):
        what = f"instance_type is {plan.instance_type}, but what a host has is what Spark gives its task"
        raise InvalidArgument("instance_type", f"{what}; leave it out, or write {instances.ON_EXECUTORS[0]!r}")
    algorithm = spec.algorithm_specification
    if algorithm is not None and algorithm.training_image is not None:
        what = f"image_uri is {algorithm.training_image}, but hosts on executors are processes"
        raise InvalidArgument("image_uri", f"{what}; leave it out, and have what the script needs on the executors")
    check_elsewhere(plan, "hosts on executors", "the driver to executors")


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
