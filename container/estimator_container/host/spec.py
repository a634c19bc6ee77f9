"""What one host is to run, and with which others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..contract import hyperparameters as hp
from ..contract.configuration import Cluster, Configuration, number
from ..contract.names import (
    DEFAULT_HANG_TIMEOUT,
    DEFAULT_STOP_TIMEOUT,
    DEFAULT_WORLD_TIMEOUT,
    HANG_TIMEOUT_HYPERPARAMETER,
    HOSTS_PER_MACHINE,
    LAUNCH_VARIABLES_HYPERPARAMETER,
    SECRET_BYTES,
    STOP_TIMEOUT,
    TRUST_NETWORK,
    WORLD_CHANNEL,
    WORLD_SECRET_FILE,
    WORLD_TIMEOUT,
    Layout,
)
from ..runtime import machine
from ..runtime.errors import ConfigurationError
from ..worlds import distributions
from ..worlds.world import World
from . import steps
from .steps import Step


@dataclass(frozen=True)
class HostSpec:
    """All that is known of a host's part in its job before it begins."""

    layout: Layout
    configuration: Configuration
    secret: bytes | None
    """What the hosts of this job prove themselves to each other with, if the platform gave anything."""
    hyperparameters: Mapping[str, Any]
    world: World | None
    """None where every host runs the script by itself."""
    steps: tuple[Step, ...]
    """None for a job with an entry point."""
    hosts_per_machine: int
    stop_timeout: float
    hang_timeout: float
    """Seconds that a world may stand still; 0 for ever."""
    world_timeout: float

    @classmethod
    def read(cls, layout: Layout, configuration: Configuration, secret: bytes | None) -> HostSpec:
        """From the configuration and the platform's variables. Raises ConfigurationError for a world that cannot be."""
        hyperparameters = hp.decode(configuration.raw_hyperparameters)
        distributions.refuse_others(hyperparameters)
        return cls(
            layout,
            configuration,
            secret,
            hyperparameters,
            world=distributions.world(hyperparameters, configuration.cluster.hosts, machine.gpus()),
            steps=steps.from_hyperparameters(hyperparameters),
            hosts_per_machine=int(number(HOSTS_PER_MACHINE, 1)),
            stop_timeout=number(STOP_TIMEOUT, DEFAULT_STOP_TIMEOUT),
            hang_timeout=_seconds(hyperparameters, HANG_TIMEOUT_HYPERPARAMETER, DEFAULT_HANG_TIMEOUT),
            world_timeout=number(WORLD_TIMEOUT, DEFAULT_WORLD_TIMEOUT),
        )

    @property
    def cluster(self) -> Cluster:
        """The hosts of the job."""
        return self.configuration.cluster

    @property
    def name(self) -> str:
        """The name of this host."""
        return self.cluster.current_host

    @property
    def hosts(self) -> tuple[str, ...]:
        """Those that this one runs the job with, in their order; the first one leads.

        Hosts that share no secret and need no world run as those of any other toolkit: each one for itself.
        """
        together = self.secret is not None or self.world is not None or bool(self.steps)
        return self.cluster.hosts if together else (self.name,)

    @property
    def leads(self) -> bool:
        """Whether this host is the first one, which leads."""
        return self.name == self.hosts[0]

    @property
    def launch_variables(self) -> list[str]:
        """The variables for launchers that the user has set for this job; others of that kind are inherited."""
        given = self.hyperparameters.get(LAUNCH_VARIABLES_HYPERPARAMETER)
        return [str(name) for name in given] if isinstance(given, list) else []

    @property
    def renamed(self) -> bool:
        """Whether this host shares its machine, and so cannot go by the machine's name."""
        return self.hosts_per_machine > 1 and machine.name() != self.name

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


def _seconds(hyperparameters: Mapping[str, object], name: str, default: float) -> float:
    """Raises ConfigurationError for anything but a number of at least 0."""
    value = hyperparameters.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ConfigurationError(f"{name} must be a number of seconds, such as {default:g}, not {value!r}")
    return float(value)
