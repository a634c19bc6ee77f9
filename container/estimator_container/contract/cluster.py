"""The hosts of a job, as the platform names them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..runtime.errors import ConfigurationError
from .names import HOMOGENEOUS_GROUP, HOST_ADDRESSES, WORLD_PORT


class HostGroup(NamedTuple):
    """Hosts of one instance type in a job of several types."""

    name: str
    instance_type: str
    hosts: tuple[str, ...]


class Cluster(NamedTuple):
    """All hosts of the job, and which of them this one is."""

    current_host: str
    hosts: tuple[str, ...]
    """In the order of `in_order`; the first is the one that leads."""
    current_instance_type: str
    current_group_name: str
    groups: tuple[HostGroup, ...]
    network_interface: str
    topology: Any
    addresses: dict[str, tuple[str, int]]
    """Host -> (address, port) for the hosts whose address the platform gave."""
    chosen_interface: str | None = None
    """The network interface that ranks are to use; None for the one that has this host's address."""

    @classmethod
    def read(
        cls, resources: Mapping[str, Any], path: str, addresses: str | None, interface: str | None = None
    ) -> Cluster:
        """From what `resourceconfig.json` holds, which is at `path`, and what HOST_ADDRESSES and INTERFACE say.

        Raises ConfigurationError for what describes no cluster.
        """
        try:
            current, hosts = resources["current_host"], _hosts(resources["hosts"])
            groups = tuple(
                HostGroup(group["instance_group_name"], group["instance_type"], _hosts(group["hosts"]))
                for group in resources.get("instance_groups") or ()
            )
        except KeyError as error:
            raise ConfigurationError(f"{path} lacks {error}") from None
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"{path} does not describe a cluster: {error}") from None
        if current not in hosts:
            raise ConfigurationError(f"{path} names the current host {current!r}, which is not among its hosts {hosts}")
        return cls(
            current_host=current,
            hosts=hosts,
            current_instance_type=resources.get("current_instance_type") or "local",
            current_group_name=resources.get("current_group_name") or HOMOGENEOUS_GROUP,
            groups=groups,
            network_interface=interface or resources.get("network_interface_name") or "eth0",
            chosen_interface=interface,
            topology=resources.get("topology"),
            addresses={} if addresses is None else _addresses(addresses),
        )

    @property
    def leader(self) -> str:
        """The name of the host that leads, the first one."""
        return self.hosts[0]

    @property
    def is_on_loopback(self) -> bool:
        """Whether the hosts talk to each other inside one machine, by addresses that no network has."""
        address, _ = self.addresses.get(self.leader, ("", 0))
        return address.startswith("127.")

    @property
    def current_group_hosts(self) -> tuple[str, ...]:
        """Empty where the platform says nothing of groups, as in the local mode of SageMaker's SDK."""
        for group in self.groups:
            if group.name == self.current_group_name:
                return group.hosts
        return ()

    @property
    def is_heterogeneous(self) -> bool:
        """Whether the hosts are in more than one instance group."""
        return len(self.groups) > 1


def _hosts(names: object) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"hosts must be a list of names, not {names!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"hosts names a host twice: {names!r}")
    return in_order(names)


def in_order(hosts: Iterable[str]) -> tuple[str, ...]:
    """Hosts as a plan numbers them, whatever order their platform lists them in: SageMaker lists them as strings.

    >>> in_order(["algo-1", "algo-10", "algo-2"])
    ('algo-1', 'algo-2', 'algo-10')
    """
    return tuple(sorted(hosts, key=_natural))


def _natural(name: str) -> tuple[list[str | int], str]:
    """Runs of digits count as numbers; names that differ in nothing else keep one order on all hosts."""
    parts = re.split("([0-9]+)", name)
    return [int(part) if at % 2 else part for at, part in enumerate(parts)], name


def _addresses(text: str) -> dict[str, tuple[str, int]]:
    try:
        given: dict[str, str] = json.loads(text)
        return {host: address_and_port(where) for host, where in given.items()}
    except (ValueError, AttributeError):
        raise ConfigurationError(
            f'{HOST_ADDRESSES} must be a JSON object such as {{"algo-1": "10.0.0.5:{WORLD_PORT}"}}, not {text!r}'
        ) from None


def address_and_port(where: str) -> tuple[str, int]:
    """Where a host is, of `address` or `address:port`. Raises ValueError."""
    address, colon, port = where.partition(":")
    return address, int(port) if colon else WORLD_PORT
