"""The world of `torch.distributed`: what torchrun tells the script, without torchrun.

The names are those that `torchrun` of PyTorch 2.13 sets for its workers ("Environment Variables" in the documentation
of torchrun). A script meets the others by `init_process_group(...)`, whose default is `env://`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...contract.reserved import Reserved
from ..world import DirectWorld, processes_per_host

if TYPE_CHECKING:
    from ...contract.settings import Restarts


class TorchWorld(DirectWorld):
    """One process group; its store is at the endpoint of the first host, where rank 0 opens it."""

    def variables_of(self, rank: int, endpoints: Sequence[str]) -> dict[str, str]:
        address, _, port = endpoints[0].rpartition(":")
        return {
            **super().variables_of(rank, endpoints),
            "GROUP_RANK": str(rank // self.processes_per_host),
            "GROUP_WORLD_SIZE": str(len(self.hosts)),
            "ROLE_NAME": "default",
            "ROLE_RANK": str(rank),
            "ROLE_WORLD_SIZE": str(self.size),
            "MASTER_ADDR": address,
            "MASTER_PORT": port,
            "TORCHELASTIC_RUN_ID": "none",  # as torchrun has it, unless it is told another
            # torchrun keeps the store itself. The toolkit has no PyTorch, so rank 0 does.
            "TORCHELASTIC_USE_AGENT_STORE": "False",
            "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
        }

    def variables_of_attempt(self, restarts: Restarts) -> dict[str, str]:
        return {
            "TORCHELASTIC_RESTART_COUNT": str(restarts.so_far),
            # After a preemption a job begins again without counting that against what is allowed.
            "TORCHELASTIC_MAX_RESTARTS": str(max(restarts)),
        }

    def defaults(self, interface: str) -> dict[str, str]:
        return {
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
            # Left alone, every process of a host would take all its CPUs.
            **({"OMP_NUM_THREADS": "1"} if self.processes_per_host > 1 else {}),
            # Left alone, both take the interface that the host's own name leads to, which need not lead to the others.
            "GLOO_SOCKET_IFNAME": interface,
            "NCCL_SOCKET_IFNAME": interface,
        }


def world(reserved: Reserved, hosts: tuple[str, ...], gpus: int) -> TorchWorld:
    """The world of this distribution. Raises ConfigurationError for a wrong number of processes per host."""
    return TorchWorld(hosts, processes_per_host(reserved, gpus))
