"""mpirun's command line, and the file of rules that goes with it.

The parameters are described by Open MPI's own `ompi_info --all --level 9`.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

from .programs import FORK_AGENT, NO_IPV6
from .world import MpiWorld

WINDOWS = {"osc": "^pt2pt", "opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}
"""What lets windows (MPI_Win) use UCX on any network.

Open MPI 4.1 has no other way between hosts where a rank may call MPI from any thread, as mpi4py asks for; and without a
word it uses UCX on few networks, TCP not being one (opal/mca/common/ucx), and Debian's never for windows
(/etc/openmpi/openmpi-mca-params.conf).
"""


class Fit(NamedTuple):
    """What the world must be fitted to on these machines."""

    node_names: tuple[str, ...]
    """What MPI calls each host; the first is the name that mpirun takes for its own machine."""
    interface: str
    """The network interface that connects the hosts."""
    scratch: str
    """A folder of this host for MPI's own files."""
    crowded: bool
    """Whether the ranks leave no CPU over, such as for the threads of a framework: one that waits must then give its
    CPU away."""
    outnumbered: bool
    """Whether all ranks are on one machine, and it has fewer CPUs."""
    single_copy: bool
    """Whether the ranks of one host may read each other's memory."""
    ipv6_port: int | None = None
    """A port of this host that is taken, if it has IPv6."""
    spawns: bool = False
    """Whether ranks are expected to start others, to which they talk by TCP only."""
    hostfile: str | None = None
    """What `spawned.write_hostfile` gives; None where ranks are not to start others."""
    fabric: bool = False
    """Whether a network is there that Open MPI uses only where it may choose how ranks talk."""
    fork_agent: str | None = None
    """What FORK_AGENT is to be; None where commands are started as they are."""


def mpirun(world: MpiWorld, fit: Fit, path: str, agent: str, given: Collection[str] = ()) -> list[str]:
    """The command that starts all ranks, without the program; `agent` is what mpirun calls instead of ssh.

    `given` are the variables for Open MPI that the user has set: like custom options, they count more than what is
    chosen here.
    """
    parameters = {
        "plm": "rsh",
        "plm_rsh_agent": agent,
        "plm_rsh_no_tree_spawn": "1",
        # Host names of a job need not resolve, and each look-up that fails costs seconds.
        "if_base_do_not_resolve": "1",
        "orte_tmpdir_base": fit.scratch,
        "oob_tcp_if_include": fit.interface,
        "btl_tcp_if_include": fit.interface,
        **({} if fit.fabric else {"pml": "ob1"}),
        **WINDOWS,
        **({} if fit.fabric else {"btl": "self,vader,tcp" if _needs_tcp(world, fit) else "self,vader"}),
        "orte_abort_on_non_zero_status": "1",
        # Aggregation holds a rank's last words back, and 4.1.8 fails to unpack them when it aborts.
        "orte_base_help_aggregate": "0",
        **({"mpi_yield_when_idle": "1"} if fit.crowded else {}),
        **({"coll_tuned_use_dynamic_rules": "1"} if fit.outnumbered and not _chooses_algorithms(world) else {}),
        **({} if fit.ipv6_port is None else {NO_IPV6: str(fit.ipv6_port)}),
        **({} if fit.fork_agent is None else {FORK_AGENT: fit.fork_agent}),
        **({} if fit.single_copy else {"btl_vader_single_copy_mechanism": "none"}),
    }
    # What the user gives counts; mpirun refuses to be told twice.
    said = world.parameters | {name.partition("OMPI_MCA_")[2] for name in given}
    slots = [f"{name}:{world.processes_per_host}" for name in fit.node_names]
    if fit.hostfile is not None and not world.maps_ranks and not any(name.startswith("rmaps") for name in said):
        from ...ranks import spawned  # only the first host starts ranks

        parameters.update(spawned.mapping(fit.hostfile, world.oversubscribes))
        slots = [name for name in fit.node_names for _ in range(world.processes_per_host)]
    if any(name.startswith("oob_tcp_static_") for name in said):
        said.add(NO_IPV6)  # Open MPI takes only one of the two kinds of ports
    parameters = {name: value for name, value in parameters.items() if name not in said}
    command = [path, "--host", ",".join(slots)]
    command += ["-np", str(world.size), "-bind-to", "none", "-map-by", "slot"]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    for name, value in parameters.items():
        command += ["-mca", name, value]
    return [*command, *world.options]


def _needs_tcp(world: MpiWorld, fit: Fit) -> bool:
    return len(world.hosts) > 1 or fit.spawns or bool(world.oversubscribes)


def _chooses_algorithms(world: MpiWorld) -> bool:
    """Whether the user says how collective operations are to be done."""
    given = (*world.parameters, *(name.partition("OMPI_MCA_")[2] for name in os.environ))
    return any(name.startswith("coll_tuned_") for name in given)


def linear_below(hosts: int) -> tuple[int, int]:
    """From how many ranks on, and below how many bytes, the linear algorithm is the quicker one: measured on two CPUs.

    On one host it took 0.4 to 0.7 of the time at 1 to 64 KiB with 3 to 16 ranks, and no less at 256 KiB with 3 or 4.
    Between two hosts, whose ranks talk by TCP, it took half of it at 4 and 16 KiB with 16 ranks, and more at 64 KiB;
    with 8 ranks or less there was nothing to choose.
    """
    return (3, 128 << 10) if hosts == 1 else (9, 32 << 10)


RULES_VARIABLE = "OMPI_MCA_coll_tuned_dynamic_rules_filename"


def rules(hosts: int) -> str:
    """What a file that RULES_VARIABLE names says of an allreduce, for ranks that outnumber the CPUs.

    Each message that a rank waits for is then a turn of the scheduler, and the linear algorithm (1) has the fewest in
    a row. 0 leaves the choice to Open MPI. (The form is that of `coll_tuned_dynamic_file.c` in Open MPI 4.1.)
    """
    ranks, size = linear_below(hosts)
    lines = (
        "1 # collective operation",
        "2 # which is allreduce",
        "2 # sizes of a communicator, each with the sizes of a message from which an algorithm is taken",
        "1 1  0 0 0 0",
        f"{ranks} 2  0 1 0 0  {size} 0 0 0",
    )
    return "".join(f"{line}\n" for line in lines)
