"""The configuration files that the platform writes before it starts a host."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..runtime.errors import ConfigurationError
from .names import HOMOGENEOUS_GROUP, HOST_ADDRESSES, OUR_CHANNELS, WORLD_PORT, Layout


class HostGroup(NamedTuple):
    """Hosts of one instance type in a job of several types."""

    name: str
    instance_type: str
    hosts: tuple[str, ...]


class Cluster(NamedTuple):
    """The hosts of the job, as `resourceconfig.json` names them."""

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

    @property
    def leader(self) -> str:
        return self.hosts[0]

    @property
    def current_group_hosts(self) -> tuple[str, ...]:
        """None where the platform says nothing of groups, as in the local mode of SageMaker's SDK."""
        for group in self.groups:
            if group.name == self.current_group_name:
                return group.hosts
        return ()

    @property
    def is_heterogeneous(self) -> bool:
        return len(self.groups) > 1


class Configuration(NamedTuple):
    """All that the configuration files say."""

    cluster: Cluster
    resource_config: dict[str, Any]
    raw_hyperparameters: dict[str, str]
    channels: dict[str, dict[str, Any]]
    """Those of the script; what comes to the toolkit itself is left out."""


def read_configuration(layout: Layout) -> Configuration:
    """Read the files below `input/config`. Raises ConfigurationError for one that is missing or malformed."""
    return from_documents(
        _read_object(layout.resource_config),
        _read_object(layout.hyperparameters),
        _read_object(layout.input_data_config),
        layout.resource_config,
    )


def from_documents(
    resources: dict[str, Any], hyperparameters: dict[str, Any], channels: dict[str, Any], path: str
) -> Configuration:
    """What the three files say; `path` is that of the first. Raises ConfigurationError for one that is malformed."""
    return Configuration(
        cluster=_cluster(resources, path),
        resource_config=resources,
        raw_hyperparameters={
            name: value if isinstance(value, str) else json.dumps(value) for name, value in hyperparameters.items()
        },
        channels={name: channel for name, channel in channels.items() if name not in OUR_CHANNELS},
    )


def read_secret(layout: Layout) -> bytes | None:
    """The job's secret, taken out of the file system; None when the platform gave none.

    Raises ConfigurationError for an empty one, which anybody could guess.
    """
    for path in (layout.world_secret, layout.channeled_secret):
        try:
            with open(path, "rb") as file:
                secret = file.read()
        except FileNotFoundError:
            continue
        _remove(path)
        if not secret:
            raise ConfigurationError(f"{path} is empty; the platform must write a secret into it")
        return secret
    return None


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except PermissionError:
        pass  # a platform may give channels for reading only, and to nobody but this container
    except OSError as error:
        if error.errno != errno.EROFS:
            raise


def read_environment(layout: Layout) -> dict[str, str]:
    """The variables that the platform left in a file, taken out of the file system; none without one."""
    if not os.path.exists(layout.environment):
        return {}
    environment = _read_object(layout.environment)
    os.unlink(layout.environment)
    for name, value in environment.items():
        if not isinstance(value, str):
            raise ConfigurationError(f"{layout.environment} must hold strings, but {name} is {type(value).__name__}")
    return environment


def _read_object(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except FileNotFoundError:
        what = "the platform must write it before it starts the host"
        raise ConfigurationError(f"{path} is missing; {what}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigurationError(f"{path} must hold a JSON object, not {type(value).__name__}")
    return value


def _cluster(resources: dict[str, Any], path: str) -> Cluster:
    try:
        current, hosts = resources["current_host"], _hosts(resources["hosts"])
        groups = tuple(
            HostGroup(group["instance_group_name"], group["instance_type"], _hosts(group["hosts"]))
            for group in resources.get("instance_groups") or ()
        )
    except KeyError as error:
        raise ConfigurationError(f"{path} does not say {error}") from None
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{path} does not describe a cluster: {error}") from None
    if current not in hosts:
        raise ConfigurationError(f"{path} names the current host {current!r}, which is not among its hosts {hosts}")
    return Cluster(
        current_host=current,
        hosts=hosts,
        current_instance_type=resources.get("current_instance_type") or "local",
        current_group_name=resources.get("current_group_name") or HOMOGENEOUS_GROUP,
        groups=groups,
        network_interface=resources.get("network_interface_name") or "eth0",
        topology=resources.get("topology"),
        addresses=_addresses(os.environ.get(HOST_ADDRESSES, "{}")),
    )


def _hosts(names: object) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"hosts must be a list of names, not {names!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"hosts names one of them twice: {names!r}")
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


def number(variable: str, default: float) -> float:
    """A number that the platform set in the environment. Raises ConfigurationError for anything else."""
    text = os.environ.get(variable, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ConfigurationError(f"{variable} must be a number such as {default:g}, not {text!r}")
    return value


def _addresses(text: str) -> dict[str, tuple[str, int]]:
    try:
        given: dict[str, str] = json.loads(text)
        return {host: _address(where) for host, where in given.items()}
    except (ValueError, AttributeError):
        raise ConfigurationError(
            f'{HOST_ADDRESSES} must be a JSON object such as {{"algo-1": "10.0.0.5:{WORLD_PORT}"}}, not {text!r}'
        ) from None


def _address(where: str) -> tuple[str, int]:
    address, colon, port = where.partition(":")
    return address, int(port) if colon else WORLD_PORT
