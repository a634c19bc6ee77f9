"""Hand a plan's script to Slurm, or to somebody who does that by hand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ....errors import BackendError
from ....plan.plan import Plan
from ....values.home import write_private
from .. import queue
from ..files import SlurmFolder

_LISTED = 20
"""So many names at most are written into a sentence."""


class _Cause(NamedTuple):
    """One of the causes for which sbatch refuses a job."""

    said: str
    """What its sentence holds then, in small letters (src/common/slurm_errno.c and slurm_opt.c of 22.05 and 24.11)."""
    what_to_do: str
    listing: tuple[str, ...] = ()
    """What prints the names that the cluster has, one or more a line, with commas between them."""


_CAUSES = (
    _Cause("node name", "name nodes that this cluster has", ("sinfo", "--noheader", "--Node", "--format=%N")),
    _Cause("feature", "name features that its nodes have", ("sinfo", "--noheader", "--format=%f")),
    _Cause("gres", "name devices that its nodes have", ("sinfo", "--noheader", "--format=%G")),
    _Cause("account", "name one of yours in slurm['account']; see `sacctmgr show associations user=$USER`"),
    _Cause("qos", "name one of yours in slurm['qos']; see `sacctmgr show associations user=$USER`"),
    _Cause("reservation", "see `scontrol show reservation`"),
    _Cause("license", "see `scontrol show licenses`"),
    _Cause("node configuration", "ask for less a node, or name another partition; see `sinfo --Node --long`"),
    _Cause("node count", "ask for fewer nodes, or name another partition; see `sinfo --summarize`"),
    _Cause("more processors", "ask for less a node, or name another partition; see `sinfo --Node --long`"),
    _Cause("memory", "ask for less memory, or name another partition; see `sinfo --Node --long`"),
    _Cause("unrecognized option", "`man sbatch` has the long names that sbatch_options takes"),
    _Cause("contact", "see `scontrol ping`, and try again"),
)
_WHERE = "the options are those of slurm= and of your slurm.toml; plan() shows the script that has them"


def submit(plan: Plan) -> tuple[int, str]:
    """Give the plan's script to sbatch; returns the job's number, and its cluster where that is known.

    Raises BackendError with what Slurm says against it.

    What it says has what to do after it, and the names that the cluster has where one was wrong.
    """
    own = queue.cluster()  # before there is a number that could be lost
    try:
        said = queue.ask("sbatch", "--parsable", text=plan.script, variables=plan.inherited_from(_own_variables()))
    except BackendError as error:
        if not str(error).startswith(queue.says("sbatch")):
            raise  # it says what to do
        raise BackendError(f"{str(error).removesuffix('.')}; {_what_to_do(str(error))}") from None
    number, _, cluster = said.strip().rpartition("\n")[2].partition(";")
    if not number.isdecimal():
        raise BackendError(f"sbatch answers {said.strip()!r}, which has no number of a job; see `squeue --me`")
    return int(number), cluster or own


def export(plan: Plan, folder: SlurmFolder, path: Path) -> None:
    """Write the plan's script for somebody who submits it. Raises BackendError where there is a file already."""
    write_private(folder.exported, str(path))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(plan.script or "")
    except FileExistsError:
        what = f"slurm['export_script'] is {str(path)!r}, which is there already"
        raise BackendError(f"{what}; remove it, or name another file") from None
    except OSError as error:
        raise BackendError(f"slurm['export_script'] is {str(path)!r}, which cannot be written: {error}") from None


def _what_to_do(said: str) -> str:
    cause = next((each for each in _CAUSES if each.said in said.lower()), None)
    if cause is None:
        return _WHERE
    names = _names(cause.listing) if cause.listing else []
    if not names:
        return cause.what_to_do
    left_out = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{cause.what_to_do}: {', '.join(names[:_LISTED])}{left_out}"


def _names(listing: tuple[str, ...]) -> list[str]:
    try:
        said = queue.ask(*listing)
    except BackendError:
        return []
    return sorted({name for line in said.splitlines() for name in line.strip().split(",")} - {"", "(null)"})


def _own_variables() -> Mapping[str, str]:
    """This process's, less those of a job of Slurm in which it may run itself, and those that set options of sbatch."""
    from_outside = ("SLURM_CONF", "SLURM_CLUSTERS")
    return {
        name: value
        for name, value in os.environ.items()
        if name in from_outside or not name.startswith(("SLURM_", "SBATCH_", "SALLOC_", "SRUN_"))
    }
