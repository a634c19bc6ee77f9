"""The command line of Open MPI's daemon on a host that is not the first, and the name by which it goes."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

from ...runtime.errors import ConfigurationError
from .programs import BORROWED_VARIABLES, NO_IPV6

_PROFILE = "( test ! -r ./.profile || . ./.profile;"


def daemon(request: str, path: str, scratch: str, renamed: bool, ipv6_port: int | None = None) -> list[str]:
    """The daemon's command on this host, from the shell line that mpirun made for a remote one.

    Of the request only the daemon's parameters are taken: the program and its folder are this host's own.
    `renamed` says that the daemon goes by another name than its machine (see `daemon_identity`); `ipv6_port` is taken
    on this host, as in Fit. Raises ConfigurationError for a request that is not for a daemon.
    """
    try:
        words = split_request(_without_profile(request))
    except ValueError:
        words = []
    starts = [at for at, word in enumerate(words) if os.path.basename(word) == "orted"]
    parameters = _parameter_values(words[starts[0] + 1 :]) if starts else None
    if parameters is None:
        raise ConfigurationError(f"mpirun asked for something other than its daemon: {request[:200]!r}")
    parameters["orte_tmpdir_base"] = scratch
    if NO_IPV6 in parameters and ipv6_port is not None:
        parameters[NO_IPV6] = str(ipv6_port)
    # The agent is a file of the first host. A daemon starts no other daemons; without these it does not look.
    for name in ("plm", "plm_rsh_agent"):
        parameters.pop(name, None)
    if renamed:
        parameters["ess"] = "slurm"
    return [path, *(word for name, value in parameters.items() for word in ("-mca", name, value))]


def _without_profile(request: str) -> str:
    """The request itself, where mpirun has put it between parentheses.

    It does so for users whose shell reads no file when it is not interactive, sh and ksh, to have it read `.profile`
    (orte/mca/plm/rsh in Open MPI 4.1). The host's environment is there already.
    """
    if request.startswith(_PROFILE) and request.rstrip().endswith(")"):
        return request.rstrip()[len(_PROFILE) : -1]
    return request


def split_request(request: str) -> list[str]:
    """As `shlex.split`, which takes a second for a megabyte of parameters: too long for a host that must not be silent.

    Raises ValueError as that does.
    """
    if "\\" in request or "'" in request or request.count('"') % 2:
        return shlex.split(request)
    return [word.replace('"', "") for word in re.findall(r'(?:[^ \t\r\n"]+|"[^"]*")+', request)]


def _parameter_values(words: Sequence[str]) -> dict[str, str] | None:
    """The MCA parameters among a daemon's arguments; None when there is anything else."""
    parameters: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word in ("-mca", "--mca"):
            name, value = next(rest, None), next(rest, None)
            if name is None or value is None:
                return None
            parameters[name] = value
        elif word not in ("--daemonize", "--tree-spawn"):
            return None
    return parameters


def daemon_identity(node: str) -> dict[str, str]:
    """Variables that make a daemon, and the ranks below it, take `node` for the name of their machine.

    Several hosts of a job can be processes on one machine. Open MPI tells machines apart by name: with
    equal names it mixes up which ranks share memory. The daemon takes its name from SLURMD_NODENAME where
    its Slurm component is chosen, and the ranks theirs from PMIX_HOSTNAME. (orte/mca/ess/slurm in Open
    MPI 4.1, and PMIx 3.)
    """
    return {**dict(zip(BORROWED_VARIABLES, ("1", "0", node))), "PMIX_HOSTNAME": node}
