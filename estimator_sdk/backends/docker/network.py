"""The network of an attempt's containers, which find each other by the names of their hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from . import engine

if TYPE_CHECKING:
    from docker import APIClient

_TRIES = 20
"""How often another network may take the addresses that the engine has just given us."""


class Network(NamedTuple):
    """A network of the engine, by its id."""

    identity: str
    name: str
    addresses: Mapping[str, str]
    """The host's name -> its fixed address; empty where the engine's name server is enough."""


def create(api: APIClient, name: str, labels: Mapping[str, str]) -> Network:
    """A network on which the engine resolves the name of a container as long as that runs.

    Raises docker.errors.DockerException, as all here.
    """
    made = api.create_network(name, driver="bridge", labels=dict(labels))
    return Network(str(made["Id"]), name, {})


def create_fixed(api: APIClient, name: str, labels: Mapping[str, str], hosts: Sequence[str]) -> Network:
    """A network on which each host has an address from before the first one starts until the last one has ended.

    Another toolkit than ours may wait until it can resolve all hosts: for a quarter of an hour `sagemaker-training`
    does (`_wait_hostname_resolution`), though a host with little to do may have come and gone in between. The engine
    gives fixed addresses on networks whose range it was told, so it is told the one that it has chosen by itself.
    """
    import docker

    for _ in range(_TRIES):
        try:
            return _create_fixed(api, name, labels, hosts)
        except docker.errors.APIError as error:
            if "overlap" not in engine.words(error):  # as it says of a range that another network has taken meanwhile
                raise
            refused = error
    raise refused


def _create_fixed(api: APIClient, name: str, labels: Mapping[str, str], hosts: Sequence[str]) -> Network:
    from docker.types import IPAMConfig, IPAMPool

    chosen = create(api, name, labels)
    try:
        subnet = api.inspect_network(chosen.identity)["IPAM"]["Config"][0]["Subnet"]
    finally:
        engine.remove_network(api, chosen.identity)
    ipam = IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)])
    made = api.create_network(name, driver="bridge", labels=dict(labels), ipam=ipam)
    addresses = islice(ip_network(subnet).hosts(), 1, None)  # after the one of the bridge itself
    return Network(str(made["Id"]), name, {host: str(each) for host, each in zip(hosts, addresses, strict=False)})
