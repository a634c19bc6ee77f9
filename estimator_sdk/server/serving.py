"""Serve the console: the socket, the address that is printed, and bounds for clients that mean no good."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import resource
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import EstimatorError, InvalidArgument
from ..values.home import private_file, regular_file
from . import app
from .state import Console

MOST_CONNECTIONS = 256
"""Connections that are held; for another one the oldest is closed that asks for nothing."""
FIRST_REQUEST_SECONDS = 60.0
"""That a connection may take to send a whole request: browsers open some ahead, and use them when they need them."""
STALLED_SECONDS = 60.0
"""After which a connection is closed that has taken nothing of its answer."""
_LEAST_TOKEN = 16  # characters
_open: OrderedDict[BoundedConnection, None] = OrderedDict()


class BoundedConnection(H11Protocol):
    """A connection that is closed when it asks for nothing, takes nothing, or when there are too many of them."""

    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection; the oldest idle one gives way where there is no room."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        _open[self] = None
        self.loop.call_later(FIRST_REQUEST_SECONDS, self._close_if_idle)
        if len(_open) > MOST_CONNECTIONS:
            oldest = next((each for each in _open if each.is_idle), self)
            oldest.transport.abort()
            _open.pop(oldest, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        _open.pop(self, None)
        self._has_taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Its reader takes less than there is."""
        super().pause_writing()
        self._look_again(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Its reader has taken enough for more to be sent."""
        self._has_taken()
        super().resume_writing()

    def _look_again(self, left: int) -> None:
        self._stalled = self.loop.call_later(STALLED_SECONDS, self._abort_if_stalled, left)

    def _abort_if_stalled(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left < before:
            self._look_again(left)
        else:
            self.transport.abort()

    def _has_taken(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _close_if_idle(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def serve(host: str, port: int, token: str, names: Sequence[str], ready: Callable[[str], None]) -> None:
    """Serve until a signal ends it; `ready` is told the address as soon as it can be opened.

    `names`: host names besides those of loopback under which it may be reached. Raises EstimatorError for a port that
    is taken, and as `JobIndex.load`.
    """
    console = Console()
    console.index.load()
    _raise_limit()
    with _bound(host, port) as listening:
        taken = listening.getsockname()[1]
        application = app.make(console, token, taken, [*names, *_names_of(host, taken)])
        config = uvicorn.Config(
            application,
            http=BoundedConnection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=1 << 16,
        )
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{taken}/?token={quote(token, safe='')}"
        with suppress(KeyboardInterrupt):
            asyncio.run(_run(_Announced(config, lambda: ready(address)), listening))


class _Announced(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


async def _run(server: uvicorn.Server, listening: socket.socket) -> None:
    await server.serve([listening])


def token_of(path: str | None) -> str:
    """The token in a file, which is made if it is missing, for this user alone; without a file a new one.

    Raises EstimatorError for a file that others may read or that holds no token.
    """
    if path is None:
        return secrets.token_urlsafe(32)
    place = Path(path)
    try:
        if not place.exists():
            with open(place, "x", encoding="ascii", opener=private_file) as file:
                file.write(f"{secrets.token_urlsafe(32)}\n")
        with open(place, encoding="ascii", opener=regular_file) as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise EstimatorError(f"--token-file {path} can be read by others; make it yours: chmod 600 {path}")
            token = file.read(1024).strip()
    except (OSError, ValueError) as error:
        raise EstimatorError(f"--token-file {path} cannot be used: {error}; name a file of your own") from None
    if len(token) < _LEAST_TOKEN or not token.isprintable() or " " in token or ";" in token:
        what = f"--token-file {path} holds no token of at least {_LEAST_TOKEN} characters without spaces"
        raise EstimatorError(f"{what}; remove the file, and one is made")
    return token


def check_host(host: str, has_token_file: bool) -> None:
    """Raises InvalidArgument for an address beyond loopback without a token of the user's choice."""
    try:
        is_near = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise InvalidArgument("host", f"--host {host!r} is not an IP address; write one, such as 127.0.0.1") from None
    if not is_near and not has_token_file:
        what = f"--host {host} lets other machines reach the console, over a connection that is not encrypted"
        raise InvalidArgument("host", f"{what}; add --token-file FILE, and put a proxy with TLS before it")


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise EstimatorError(f"the console cannot listen on {host}:{port}: {error}; choose another --port") from None
    return made


def _names_of(host: str, port: int) -> list[str]:
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]


def _raise_limit() -> None:
    """Room for the descriptors of all connections, as far as this user may have it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MOST_CONNECTIONS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
