"""What one host is to run, and with which others."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ..contract.cluster import Cluster
from ..contract.names import SECRET_BYTES, TRUST_NETWORK, WORLD_CHANNEL, WORLD_SECRET_FILE, Layout
from ..contract.settings import Settings
from ..runtime import machine
from ..runtime.errors import ConfigurationError
from ..worlds import distributions
from ..worlds.world import World

FEW_RANKS = 4
"""Ranks to a CPU, up to which each still gets it often enough."""


@dataclass(frozen=True)
class HostSpec:
    """All that is known of a host's part in its job before it begins."""

    settings: Settings
    secret: bytes | None
    """What the hosts of this job prove themselves to each other with, if the platform gave anything."""
    world: World | None
    """None where every host runs the script by itself."""

    @classmethod
    def from_settings(cls, settings: Settings, secret: bytes | None) -> HostSpec:
        """Raises ConfigurationError for a world that cannot be."""
        distributions.refuse_others(settings.reserved)
        world = distributions.world(settings.reserved, settings.cluster.hosts, machine.gpus())
        return cls(settings, secret, world)

    @property
    def layout(self) -> Layout:
        """Where the host's files are."""
        return self.settings.layout

    @property
    def cluster(self) -> Cluster:
        """The hosts of the job."""
        return self.settings.cluster

    @property
    def name(self) -> str:
        """The name of this host."""
        return self.cluster.current_host

    @property
    def hosts(self) -> tuple[str, ...]:
        """Those that this one runs the job with, in their order; the first one leads.

        Hosts that share no secret and need no world run as those of any other toolkit: each one for itself.
        """
        together = self.secret is not None or self.world is not None or bool(self.settings.steps)
        return self.cluster.hosts if together else (self.name,)

    @property
    def leads(self) -> bool:
        """Whether this host is the first one, which leads."""
        return self.name == self.hosts[0]

    @property
    def renamed(self) -> bool:
        """Whether this host shares its machine, and so cannot go by the machine's name."""
        return self.settings.hosts_per_machine > 1 and machine.name() != self.name

    @functools.cached_property
    def lacks_cpus(self) -> bool:
        """Whether the ranks that share this host's CPUs keep each other, and its toolkit, from running for seconds."""
        if self.world is None:
            return False
        return self.world.processes_per_host * self.settings.hosts_per_machine > FEW_RANKS * machine.cpus()

    @functools.cached_property
    def may_use_fabric(self) -> bool:
        """Whether Open MPI is left to choose the network of an MPI world, as far as this host's machine shows it."""
        from ..worlds.mpi import fabric  # other worlds have no need of it

        return fabric.is_chosen(self.settings.transport, self.settings.hosts_per_machine == len(self.hosts))

    @property
    def missed_beats(self) -> int:
        """Those after which another host counts as silent: each has as many ranks, and may have as few CPUs."""
        from ..mesh.pulse import MISSED_BEATS, PATIENT_BEATS  # not before hosts are to speak to each other

        return PATIENT_BEATS if self.lacks_cpus else MISSED_BEATS

    def required_secret(self) -> bytes:
        """The secret. Raises ConfigurationError without one."""
        if self.secret is None:
            raise ConfigurationError(
                "the hosts of this job share no secret, so they cannot trust each other: the platform must write "
                f"the same {self.layout.world_secret} on every host, or bring it in the channel {WORLD_CHANNEL!r}, "
                f"as {WORLD_SECRET_FILE} with {SECRET_BYTES} random bytes; where nobody else can reach their network, "
                f'environment={{"{TRUST_NETWORK}": "1"}} works without one'
            )
        return self.secret
