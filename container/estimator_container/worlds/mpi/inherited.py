"""Variables by which launchers speak to Open MPI, and which a host has from whoever called.

A shell in an allocation, a conda package or an HPC image sets them for launches of its own. Here the toolkit starts the
world, so its daemons see none of those that the user has not set for this very job.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

# The frameworks of Open MPI's runtime, whose parameters say how daemons and ranks are started (orte/mca and
# opal/mca/pmix in 4.1), its own parameters, what excludes an interface, for it contradicts the one that is chosen, and
# what asks for CUDA, as conda's package has its users do, and crashes the ranks of a build without it.
_PARAMETERS = (
    "dfs|errmgr|ess|filem|grpcomm|hwloc|iof|mca|notifier|odls|oob|orte|plm|pmix|ras|regx|rmaps|rml|routed|rtc|schizo"
    "|snapc|sstore|state|btl_tcp_if_exclude|opal_cuda_support"
)
_OF_MPI = re.compile(r"OMPI_|OPAL_|ORTE_|PMIX_|PMI_|PRTE_")
_STARTS = re.compile(
    rf"OMPI_MCA_({_PARAMETERS})(_|$)|OMPI_(COMM|UNIVERSE)_|ORTE_|PMIX_|PMI_|PRTE_|SLURM_|SLURMD_|PBS_|LSB_|LOADL_|SGE_"
    r"|PE_HOSTFILE$"
)
_OF_SLURM = re.compile(r"SLURM|(OMPI|PRTE)_MCA_plm_slurm_args$")  # the latter two from 23.11 on
_FAMILY = re.compile(r"([A-Z]+_)(?!MCA_)")
_LISTED = 3  # of one family, such as SLURM_, that are named one by one


def of_launchers(names: Iterable[str]) -> list[str]:
    """Those of the names that this module is about: whoever sets them for a job says that it has."""
    return sorted(name for name in names if _STARTS.match(name) or _OF_MPI.match(name))


def is_of_scheduler(name: str) -> bool:
    """Whether Slurm gives such a variable to all that it starts, so that nobody has set it on purpose."""
    return _OF_SLURM.match(name) is not None


def for_programs(environment: Mapping[str, str], given: Collection[str]) -> dict[str, str]:
    """What Open MPI's programs see; `given` are names that the user has set for this job."""
    left_out = _left_out(environment, given)
    return {name: value for name, value in environment.items() if name not in left_out}


def for_ranks(environment: Mapping[str, str], given: Collection[str]) -> dict[str, str]:
    """What a rank has besides MPI's own variables, of which it gets the right ones from its daemon."""
    return {name: value for name, value in environment.items() if name in given or not _OF_MPI.match(name)}


def sentence(names: Iterable[str], given: Collection[str]) -> str | None:
    """What is said of the variables that are left out; None where there are none."""
    left_out = _left_out(names, given)
    if not left_out:
        return None
    return (
        f"{', '.join(_folded(left_out))}: inherited, so hidden from Open MPI when it starts the world; "
        "set one in environment=, or its parameter in custom_mpi_options, for it to take effect"
    )


def _left_out(names: Iterable[str], given: Collection[str]) -> list[str]:
    return sorted(name for name in names if _STARTS.match(name) and name not in given)


def _folded(names: list[str]) -> list[str]:
    """
    >>> _folded(["OMPI_MCA_ess", "OMPI_MCA_plm", "SLURM_A", "SLURM_B", "SLURM_C", "SLURM_D"])
    ['OMPI_MCA_ess', 'OMPI_MCA_plm', 'SLURM_* (4)']
    """
    families: dict[str, list[str]] = {}
    for name in names:
        match = _FAMILY.match(name)
        families.setdefault(match[1] if match else name, []).append(name)
    folded = ([f"{family}* ({len(each)})"] if len(each) > _LISTED else each for family, each in families.items())
    return [word for words in folded for word in words]
