"""The batch script of a job: `plan()` shows it, and `fit()` submits this very text."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from ...errors import BackendError
from ...plan.plan import Plan
from . import nodes_python, packages
from .files import SlurmFolder, jobs_on_slurm
from .options import SlurmOptions

MAIN = str(Path(__file__).parent)
END_SECONDS = 600.0
"""Beyond `max_run`, for channels, outputs and the end of what is stopped: our own limit is to come before Slurm's."""


def batch_script(plan: Plan, options: SlurmOptions, partition: str | None, defaults: Path | None) -> str:
    """What `sbatch` gets: its options, where defaults among them come from, and the supervisor of the job."""
    source = [] if defaults is None else [f"# with the defaults in {shlex.quote(str(defaults))}"]
    told = (f"#SBATCH {line}" for line in _options(plan, options, partition))
    return "\n".join(["#!/bin/sh", *told, *source, *nodes_python.before_start(options), *_program(plan, options)])


def _options(plan: Plan, options: SlurmOptions, partition: str | None) -> Iterator[str]:
    folder = SlurmFolder.for_job(plan.job_name)
    yield f"--job-name={plan.job_name}"
    yield f"--nodes={len(plan.hosts)}"
    yield "--ntasks-per-node=1"
    cpus = plan.processes_per_host if plan.cpus is None else plan.cpus
    if plan.cpus is not None or (cpus > 1 and not options.exclusive):
        yield f"--cpus-per-task={math.ceil(cpus)}"  # or Slurm would grant a node's processes one between them
    if plan.memory is not None:
        yield f"--mem={math.ceil(plan.memory * 1024)}M"
    yield f"--time={math.ceil((plan.max_run + plan.stop_timeout + END_SECONDS) / 60)}"
    if partition is not None:
        yield f"--partition={partition}"
    yield from options.lines()
    if options.dependency is not None:
        yield "--kill-on-invalid-dep=yes"  # or it would wait for ever
    yield "--open-mode=append"
    yield f'--output="{_as_a_name_of_sbatch(str(folder.supervisor_log))}"'
    yield "--export=ALL"  # any other choice has Slurm load what a login shell sets; hosts get what the plan says


def _as_a_name_of_sbatch(path: str) -> str:
    """A path as sbatch takes it, to whom % begins a pattern. Raises BackendError for one that it cannot be told."""
    if not path.isprintable() or '"' in path or "\\" in path:
        what = f"the folder of jobs is {jobs_on_slurm()}, and no line of a batch script can hold that path"
        raise BackendError(f"{what}; set ESTIMATOR_HOME to one without quotes, backslashes and control characters")
    return path.replace("%", "%%")


def _program(plan: Plan, options: SlurmOptions) -> Iterator[str]:
    folder = str(SlurmFolder.for_job(plan.job_name).path)
    if options.python is None:
        search_path = json.dumps([str(Path(entry).absolute()) for entry in sys.path])
        words = [sys.executable, "-I", "-S", MAIN, folder, search_path]
    else:  # what that Python has itself comes after the packages
        copy = packages.copy()
        words = [
            options.python,
            "-I",
            str(copy / Path(MAIN).relative_to(packages.SDK.parent)),
            folder,
            json.dumps([str(copy)]),
        ]
    yield "trap '' INT HUP  # they stop a job, once its supervisor can take them"
    yield f"exec {shlex.join(words)}"
    yield ""
