"""The application: the page, the API, the guard before both, and the thread that keeps the index up to date."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .. import __version__, backends
from .api import diagnosis, document, events, jobs, logs, measured, window
from .guard import RequestGuard
from .jobs.apart import JobsApart
from .jobs.services import ServiceWatch
from .state import Console

if TYPE_CHECKING:
    from starlette.requests import Request

    from .jobs.index import Change, JobIndex

PAGE = Path(__file__).with_name("page")
OPERATIONS = (
    *jobs.OPERATIONS,
    *logs.OPERATIONS,
    *measured.OPERATIONS,
    *diagnosis.OPERATIONS,
    *window.OPERATIONS,
    *events.OPERATIONS,
)
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def make(console: Console, token: str, port: int, hosts: Iterable[str]) -> RequestGuard:
    """The whole application of a console whose index is loaded."""

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def tell(change: Change) -> None:
            loop.call_soon_threadsafe(console.hub.tell, change)

        watches: dict[str, JobIndex | ServiceWatch | JobsApart] = {
            "index": console.index,
            "services": ServiceWatch(console.index),
            **{name: JobsApart(console.index, name) for name in backends.with_own_folders()},
        }
        for name, watch in watches.items():
            threading.Thread(target=watch.follow, args=(tell,), name=name, daemon=True).start()
        yield
        for watch in watches.values():
            watch.close()

    described = document.openapi(OPERATIONS, __version__)

    async def describe(request: Request) -> Response:
        return JSONResponse(described)

    routes = [
        *(each.route(console) for each in OPERATIONS),
        Route("/api/openapi.json", describe),
        *_page_routes(),
    ]
    app = Starlette(routes=routes, lifespan=life, exception_handlers={404: _not_found, 405: _not_found})
    return RequestGuard(app, token, port, hosts)


def _page_routes() -> list[Route]:
    """The files of the page, which are known from the start: no name that is asked for is ever a path."""
    files = [path for path in sorted(PAGE.rglob("*")) if path.suffix in _TYPES and "node_modules" not in path.parts]
    routes = [_file(f"/page/{path.relative_to(PAGE).as_posix()}", path) for path in files if path.suffix != ".html"]
    return [_file("/", PAGE / "index.html"), *routes]


def _file(address: str, path: Path) -> Route:
    body = path.read_bytes()
    packed = gzip.compress(body, mtime=0)
    kind = f"{_TYPES[path.suffix]}; charset=utf-8"

    async def respond(request: Request) -> Response:
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, headers={"content-encoding": "gzip", "content-type": kind})
        return Response(body, headers={"content-type": kind})

    return Route(address, respond)


async def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return JSONResponse({"error": "there is nothing at this address; /api/openapi.json lists what there is"}, status)
