"""The small jobs that are hurt: `looper.py` on hosts of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from estimator_sdk import Estimator
from tests.ssh import pool

from .faults import Shape

LOOPER = Path(__file__).with_name("looper.py")


def estimator(
    shape: Shape, image: str | None, hyperparameters: dict[str, Any], memory: float | None = None
) -> Estimator:
    """An estimator for a job of a shape; `hyperparameters` are the looper's arguments, `memory` is GiB a host."""
    mpi = {"mpi": {"enabled": True, "processes_per_host": shape.processes}}
    return Estimator(
        entry_point=LOOPER,
        backend=shape.backend,
        instance_type="slurm" if shape.backend == "slurm" else "local",
        image_uri=image,
        instance_count=shape.hosts,
        distribution=mpi if shape.processes else None,
        memory=memory,
        hyperparameters=hyperparameters,
        base_job_name="chaos",
        stop_timeout=2,
        hosts=pool.NAMES[: shape.hosts] if shape.backend == "ssh" else None,
    )
