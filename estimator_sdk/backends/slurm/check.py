"""What jobs on Slurm need of this machine, and of the cluster."""

from __future__ import annotations

import shutil

from ...errors import BackendError, EstimatorError, InvalidArgument
from ...values.home import secured
from ..port import Check, Missing
from . import queue, site
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


def _right_to_submit() -> str:
    """Slurm checks a job as if it were submitted, and forgets it."""
    try:
        options, defaults = site.chosen({})
    except InvalidArgument as error:
        raise Missing(str(error), "estimator doctor --backend slurm") from None
    script = "\n".join(["#!/bin/sh", *(f"#SBATCH {line}" for line in options.lines()), ""])
    where = "the default partition" if options.partition is None else f"partition {options.partition}"
    try:
        queue.ask("sbatch", "--test-only", "--nodes=1", text=script)
    except BackendError as error:
        if shutil.which("sbatch") is None:
            raise Missing(str(error), "module load slurm") from None
        file = f"the defaults in {defaults}" if defaults else "a slurm.toml with a partition and an account of yours"
        raise Missing(f"you may submit nothing to {where}: {error}; see {file}", "sacctmgr show associations") from None
    return where


def _folder() -> str:
    try:
        return str(secured(jobs_on_slurm()))
    except (OSError, EstimatorError) as error:
        raise Missing(str(error), "export ESTIMATOR_HOME=/a/shared/folder") from None


def _images() -> str:
    """None is no fault: hosts are processes then."""
    from .batch import images

    runtime = images.found()
    if runtime is None:
        return "nothing here runs them: jobs have no image_uri, unless nodes have more than this machine"
    return f"{runtime} runs them"


CHECKS: tuple[Check, ...] = (
    ("Slurm", _programs),
    ("partitions", _controller),
    ("right to submit", _right_to_submit),
    ("job folder", _folder),
    ("images on nodes", _images),
)
