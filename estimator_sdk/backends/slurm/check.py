"""What jobs on Slurm need of this machine, and of the cluster."""

from __future__ import annotations

import shutil

from ...errors import BackendError, EstimatorError
from ...values.home import secured
from ..port import Check, Missing
from . import queue
from .files import jobs_on_slurm

_NEEDED = ("sbatch", "srun", "squeue", "scontrol", "scancel")


def _programs() -> str:
    for program in _NEEDED:
        if shutil.which(program) is None:
            raise Missing(f"{program} is not on PATH", "module load slurm")
    try:
        return queue.ask("sbatch", "--version").strip()
    except BackendError as error:
        raise Missing(str(error), "export SLURM_CONF=/where/it/is/slurm.conf") from None


def _controller() -> str:
    try:
        said = queue.ask("sinfo", "--noheader", "--format=%R %D %a")
    except BackendError as error:
        raise Missing(str(error), "scontrol ping") from None
    partitions = [line.split() for line in said.splitlines()]
    up = [f"{name} ({nodes} nodes)" for name, nodes, available in partitions if available == "up"]
    if not up:
        raise Missing("no partition is up", "sinfo")
    return ", ".join(up)


def _folder() -> str:
    try:
        return str(secured(jobs_on_slurm()))
    except (OSError, EstimatorError) as error:
        raise Missing(str(error), "export ESTIMATOR_HOME=/a/shared/folder") from None


CHECKS: tuple[Check, ...] = (("Slurm", _programs), ("partitions", _controller), ("job folder", _folder))
