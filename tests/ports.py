"""Ports for servers that cannot choose one themselves and say which, and that take their time until they listen."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading

_LOCK = threading.Lock()
_GIVEN: set[int] = set()
"""Those that this process has given away: who asked for one may not listen at it yet."""
PORTS = range(20000, 32000)  # below those that Linux gives to clients: ip(7), ip_local_port_range


def free_port() -> int:
    """One of `free_ports`."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Ports side by side that nothing listens at now, and that no other test process takes before somebody does."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw15").removeprefix("gw")) % 16
    own = PORTS[worker * len(PORTS) // 16 : (worker + 1) * len(PORTS) // 16]
    while True:
        first = random.choice(own[:-count])
        ports = range(first, first + count)
        with _LOCK, contextlib.ExitStack() as sockets, contextlib.suppress(OSError):
            if _GIVEN.isdisjoint(ports):
                for port in ports:
                    sockets.enter_context(socket.socket()).bind(("", port))
                _GIVEN.update(ports)
                return [*ports]
