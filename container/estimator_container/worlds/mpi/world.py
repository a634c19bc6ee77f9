"""A world of Open MPI: the ranks, and what the user's own options say of them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ...contract.names import NUM_PROCESSES
from ...contract.reserved import Reserved
from ...runtime.errors import ConfigurationError
from .. import world as worlds

_MAPS_RANKS = re.compile(r"--?(by|cpu|map-by|N$|npernode|npersocket|pernode|ppr|rank-by|rankfile|rf)|rmaps_")
_PLACES_RANKS = re.compile(r"--?(bind|by|cpu|map-by|npersocket|rank-by|rankfile|rf|use-hwthread)|(hwloc_base|rmaps)_")
_OVERSUBSCRIBES = re.compile(r"(?<!no)(?<!no_)oversubscribe", re.I)
_FORBIDS_IT = re.compile(r"no_?oversubscribe", re.I)


@dataclass(frozen=True)
class MpiWorld(worlds.World):
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
        from ...logs.masking import in_words

        return list(in_words(command))

    @property
    def parameters(self) -> set[str]:
        """The names of Open MPI's parameters that the user's options set."""
        pairs = zip(self.options, self.options[1:])
        return {name for flag, name in pairs if flag in ("-mca", "--mca", "-gmca", "--gmca")}

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

    def defaults(self, interface: str, with_fabric: bool) -> dict[str, str]:
        """Variables for MPI's programs and the ranks, where the user has set none of that name.

        There are none where Open MPI may choose a network: it would read them for its messages, too (`mca_pml_ucx_open`
        in ompi/mca/pml/ucx), which would not leave `interface` then, nor would their buffers stay registered.

        UCX comes with Open MPI's libraries, and patches the C library when it is loaded: 40 ms in each process, for
        what windows alone use unless the user asks for more. (UCX_MEM_EVENTS in UCX's `ucx_info -f`.) Open MPI has it
        read first what begins with MPI_ (`ucp_config_read` in ompi/mca/osc/ucx), here that windows take `interface`. At
        the end the ranks close their connections without waiting for each other, which UCX calls an error on stdout.
        """
        if with_fabric or "pml" in self.parameters:
            return {}
        devices = {} if "UCX_NET_DEVICES" in os.environ else {"MPI_UCX_NET_DEVICES": interface}
        return {"UCX_MEM_EVENTS": "no", "UCX_LOG_LEVEL": "fatal", **devices}


def from_reserved(reserved: Reserved, hosts: tuple[str, ...], gpus: int) -> MpiWorld:
    """The world that the reserved hyperparameters describe; each host has so many GPUs.

    Raises ConfigurationError for numbers of processes that contradict each other, and for options that cannot be split
    into words.
    """
    per_host = worlds.processes_per_host(reserved, gpus)
    if reserved.num_processes not in (None, per_host * len(hosts)):
        raise ConfigurationError(
            f"{NUM_PROCESSES} is {reserved.num_processes}, but {len(hosts)} hosts with {per_host} processes each make "
            f"a world of {per_host * len(hosts)}; leave it out, or change the other two"
        )
    options, variables = _split_options(reserved.custom_mpi_options or "")
    return MpiWorld(hosts, per_host, options, variables)


def _split_options(text: str) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(
            f"custom_mpi_options cannot be split into words: {error} in {text!r}; check its quotes"
        ) from None
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
