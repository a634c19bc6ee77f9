"""Where the other hosts find this one: its address, its interface, and a port that a rank can listen at."""

from __future__ import annotations

import socket

from ..contract.cluster import Cluster
from ..contract.names import WORLD_PORT
from ..runtime import machine


def address_of(cluster: Cluster) -> str:
    """This host's address for the others. Raises OSError where its name leads nowhere."""
    given = cluster.addresses.get(cluster.current_host)
    if given:
        return given[0]
    return "127.0.0.1" if len(cluster.hosts) == 1 else socket.gethostbyname(cluster.current_host)


def interface_of(cluster: Cluster) -> str:
    """The network interface that connects the hosts. Raises OSError as `address_of` does."""
    if cluster.chosen_interface is not None and len(cluster.hosts) > 1:
        return _interface_here(cluster.chosen_interface)
    return "lo" if len(cluster.hosts) == 1 else machine.interface_for(address_of(cluster), cluster.network_interface)


def _interface_here(name: str) -> str:
    here = [each for _, each in socket.if_nameindex()]
    if name not in here:
        raise OSError(f"it has no network interface {name!r}, which the job is to use; it has {', '.join(here)}")
    return name


def listening_socket(given: int | None) -> socket.socket:
    """Where the first host listens for the others: the descriptor that it was given, else the port of all jobs."""
    return socket.create_server(("", WORLD_PORT), backlog=128) if given is None else socket.socket(fileno=given)


def another_listening_socket(cluster: Cluster) -> socket.socket:
    """Where the first host listens again, later, at any port of its address. Raises OSError."""
    return socket.create_server((address_of(cluster), 0))


def text_of(sock: socket.socket) -> str:
    """Where a socket listens, as `address:port`."""
    address, port = sock.getsockname()
    return f"{address}:{port}"


class Endpoint:
    """An address and ports that are kept until the end of the job.

    A port is bound and nobody listens at it, with SO_REUSEADDR. So the kernel gives it to no other process, of this
    job or another, and lets one bind it that asks for that very port with SO_REUSEADDR too, as the servers of PyTorch
    and gRPC do (socket(7); net/ipv4/inet_connection_sock.c of Linux).
    """

    def __init__(self, address: str, ports: int = 1) -> None:
        self._sockets = [_bound() for _ in range(ports)]
        self.text = ",".join(f"{address}:{each.getsockname()[1]}" for each in self._sockets)
        """As `address:port`; several with commas between them."""

    def close(self) -> None:
        """Release the ports."""
        for each in self._sockets:
            each.close()


def taken_ipv6_port() -> socket.socket | None:
    """A socket that has a port of IPv6 as long as it is open, and does not listen; None where there is no IPv6."""
    try:
        found = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        found.bind(("::", 0))
    except OSError:
        return None
    return found


def _bound() -> socket.socket:
    """A socket at a free port of all addresses, of IPv6 too where there is that."""
    try:
        found = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("::", 0))
    except OSError:
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("0.0.0.0", 0))
    return found
