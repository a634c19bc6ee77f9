"""What all distributions have in common: how many ranks there are, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..contract.reserved import Reserved

if TYPE_CHECKING:
    from ..contract.settings import Restarts


@dataclass(frozen=True)
class World:
    """The ranks of a job."""

    hosts: tuple[str, ...]
    """The first one leads. Ranks are numbered host by host in this order."""
    processes_per_host: int

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.hosts) * self.processes_per_host

    def host_of(self, rank: int) -> str:
        """The name of the host that a rank runs on."""
        return self.hosts[rank // self.processes_per_host]

    def is_awaited(self, rank: int) -> bool:
        """Whether the job waits for this rank to end; ranks that it does not wait for are ended afterwards."""
        return True

    def role_of(self, rank: int) -> str:
        """What a rank is in the world, such as `ps 1`; empty where all are alike."""
        return ""

    def ranks_of(self, host: str) -> range:
        """The ranks that run on a host."""
        first = self.hosts.index(host) * self.processes_per_host
        return range(first, first + self.processes_per_host)


class DirectWorld(World):
    """A world whose ranks are started by the toolkit of their host, and told where the others are.

    Each host brings an endpoint, `address:port`, at which one of its ranks can listen, or with commas between them more
    of them.
    """

    ports_per_host: ClassVar[int] = 1
    """How many endpoints it brings."""

    def variables_of(self, rank: int, endpoints: Sequence[str]) -> dict[str, str]:
        """What a rank finds in its environment; `endpoints` are those of the hosts, in their order."""
        return {
            "RANK": str(rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_RANK": str(rank % self.processes_per_host),
            "LOCAL_WORLD_SIZE": str(self.processes_per_host),
        }

    def variables_of_attempt(self, restarts: Restarts) -> dict[str, str]:
        """What each rank finds there besides, of the attempt that it runs in."""
        return {}

    def module_of(self, rank: int) -> str | None:
        """The module of the toolkit that a rank runs instead of the script; None for the script."""
        return None

    def defaults(self, interface: str) -> dict[str, str]:
        """Variables for every rank, where the user has set none of that name.

        `interface` is the network interface that connects the hosts.
        """
        return {}


def processes_per_host(reserved: Reserved, gpus: int) -> int:
    """As many as the job asks for, else one for each GPU of a host, else one."""
    return reserved.processes_per_host or max(1, gpus)
