"""Who may ask the console: a guard before everything that it answers.

The console runs commands of its user's, so a page of another site, another user of the machine, and whoever has
no token must get nothing. What the guard refuses never reaches a route.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE = ("GET", "HEAD")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_LONGEST_BODY = 1 << 12  # bytes: no request of the API has a body that matters


class RequestGuard:
    """Lets a request through that has the token, a host name that is ours, and no other site behind it."""

    def __init__(self, app: ASGIApp, token: str, port: int, hosts: Iterable[str] = ()) -> None:
        """`hosts`: names besides those of loopback by which the console is reached, with a port where there is one."""
        self._app = app
        self._token = token
        self._cookie = f"estimator-console-{port}"
        named = (*hosts, *(f"{name}:{port}" for name in _LOOPBACK))
        self._hosts = frozenset(name.lower() for name in named)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a WebSocket, which there is none of
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        is_first = self._has_token_in_address(scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                added = [(k.encode(), v.encode()) for k, v in _HEADERS.items() if k.encode() not in given]
                if is_first:
                    added.append((b"set-cookie", self._set_cookie().encode()))
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self._app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """The status and the sentence for a request that is refused."""
        host = headers.get("host", "")
        if host.lower() not in self._hosts:
            return 421, f"the console is not reached as {host!r}; open the address that it printed"
        if not _is_ours(scope, headers, host):
            return 403, "the console answers no other site; open the address that it printed"
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not length.isdecimal() or int(length) > _LONGEST_BODY:
            return 413, "the console takes no such body; send none"
        if not self._is_known(scope, headers):
            return 401, "the token is missing or wrong; open the address that `estimator console` printed"
        return None

    def _is_known(self, scope: Scope, headers: dict[str, str]) -> bool:
        if self._has_token_in_address(scope):
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._is_token(given.strip())
        cookies = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
        return any(name == self._cookie and self._is_token(value) for name, _, value in cookies)

    def _has_token_in_address(self, scope: Scope) -> bool:
        """Whether the page is opened for the first time; the token stands in no other address."""
        if scope["path"] != "/" or scope["method"] not in SAFE:
            return False
        words = (each.partition("=") for each in scope["query_string"].decode("latin-1").split("&"))
        return any(name == "token" and self._is_token(unquote(value)) for name, _, value in words)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def _set_cookie(self) -> str:
        return f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"


def _is_ours(scope: Scope, headers: dict[str, str], host: str) -> bool:
    """Whether a browser, if there is one behind a request, has sent it for our own page, or for who opens it."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return False
    if scope["method"] in SAFE:
        is_opened = headers.get("sec-fetch-mode") == "navigate" and scope["path"] == "/"
        return is_opened or site in (None, "same-origin", "none")
    is_by_program = headers.get("authorization", "").lower().startswith("bearer ")
    return is_by_program or (origin is not None and site in (None, "same-origin"))


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = {**_HEADERS, "content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
