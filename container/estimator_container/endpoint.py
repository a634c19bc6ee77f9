"""A port of this host that a rank can listen at, and that nobody else is given meanwhile."""

from __future__ import annotations

import socket


class Endpoint:
    """An address and a port that is kept until the end of the job.

    The port is bound and nobody listens at it, with SO_REUSEADDR. So the kernel gives it to no other process, of this
    job or another, and lets one bind it that asks for that very port with SO_REUSEADDR too, as the servers of PyTorch
    and gRPC do (socket(7); net/ipv4/inet_connection_sock.c of Linux).
    """

    def __init__(self, address: str) -> None:
        self._socket = _bound()
        self.text = f"{address}:{self._socket.getsockname()[1]}"
        """As `address:port`."""

    def close(self) -> None:
        self._socket.close()


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
