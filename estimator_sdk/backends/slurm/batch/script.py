"""The batch script of a job: `plan()` shows it, and `fit()` submits this very text."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from estimator_container.worlds.mpi import fabric

from ....errors import BackendError
from ....plan.plan import Plan
from ..files import SlurmFolder, jobs_on_slurm
from ..options import SlurmOptions
from . import nodes_python, packages, partitions, store_client, time_limit

MAIN = str(Path(__file__).parents[1])


def with_script(plan: Plan, options: SlurmOptions, partition: str | None, defaults: Path | None) -> Plan:
    """The plan with what `sbatch` gets, and with no more time to run than its partitions allow.

    Raises InvalidArgument and BackendError for what no script can say.
    """
    where = "slurm['partition']" if partition is None else "instance_type"
    allowed = partitions.of_job(partition or options.partition, where)
    partitions.check_nodes(allowed, _nodes(plan))
    limit = time_limit.of_partitions(allowed)
    plan = time_limit.within(plan, limit)
    return replace(plan, script=_script(plan, options, partition, defaults, limit))


def _script(
    plan: Plan, options: SlurmOptions, partition: str | None, defaults: Path | None, limit: time_limit.TimeLimit | None
) -> str:
    """Its options, where defaults among them come from, and the supervisor of the job."""
    notes = [] if defaults is None else [f"# with the defaults in {shlex.quote(str(defaults))}"]
    notes += time_limit.note(plan, limit)
    if len(plan.hosts) > 1:
        notes.append(f"# MPI between nodes, as this machine shows it: {fabric.sentence(options.transport)}")
    told = (f"#SBATCH {line}" for line in _options(plan, options, partition, limit))
    return "\n".join(["#!/bin/sh", *told, *notes, *nodes_python.before_start(options), *_program(plan, options)])


def _options(
    plan: Plan, options: SlurmOptions, partition: str | None, limit: time_limit.TimeLimit | None
) -> Iterator[str]:
    folder = SlurmFolder.for_job(plan.job_name)
    yield f"--job-name={plan.job_name}"
    yield f"--nodes={_nodes(plan)}"
    yield "--ntasks-per-node=1"
    cpus = (plan.processes_per_host if plan.cpus is None else plan.cpus) * plan.hosts_per_node
    if plan.cpus is not None or (cpus > 1 and not options.exclusive):
        yield f"--cpus-per-task={math.ceil(cpus)}"  # or Slurm would grant a node's processes one between them
    if plan.memory is not None:
        yield f"--mem={math.ceil(plan.memory * 1024 * plan.hosts_per_node)}M"
    yield f"--time={time_limit.minutes(plan, limit)}"
    if partition is not None:
        yield f"--partition={partition}"
    yield from options.lines()
    if options.dependency is not None:
        yield "--kill-on-invalid-dep=yes"  # or it would wait for ever
    yield "--open-mode=append"
    yield f'--output="{_as_a_name_of_sbatch(str(folder.supervisor_log))}"'
    yield "--export=ALL"  # any other choice has Slurm load what a login shell sets; hosts get what the plan says


def _nodes(plan: Plan) -> int:
    return sum(math.ceil(hosts / plan.hosts_per_node) for hosts in (len(plan.hosts), plan.spare_hosts))


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
        client = store_client.needed(plan, options)
        words = [
            options.python,
            "-I",
            str(copy / Path(MAIN).relative_to(packages.SDK.parent)),
            folder,
            json.dumps([str(copy), *([str(client.folder)] if client is not None else ())]),
        ]
    yield "trap '' INT HUP  # they stop a job, once its supervisor can take them"
    yield f"exec {shlex.join(words)}"
    yield ""
