"""Server-sent events: what changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.responses import JSONResponse, Response

from ..changes import MOST_LISTENERS
from ..logs.selection import is_here, select
from .lasting import while_there
from .operation import Operation, Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from ...backends.port import StartedJob
    from ..state import Console
    from .operation import Values


class Changes(Response):
    """The events, for as long as the page listens."""

    def __init__(self, console: Console, files: Sequence[Path]) -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self._console = console
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the page, or the console, ends."""

        with self._console.hub.listening(self._files) as listener:  # before anything is waited for: it has a bound

            async def tell() -> None:
                async for message in listener.messages():
                    await send({"type": "http.response.body", "body": message, "more_body": True})

            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await while_there(receive, tell())


async def _events(console: Console, values: Values, request: Request) -> Response:
    name = values.text("job")
    files: Sequence[Path] = ()
    if name is not None:
        threads = console.threads_for(name)
        job = await to_thread.run_sync(console.job, name, limiter=threads)
        files = await to_thread.run_sync(_logs_of, job, limiter=threads)
    if console.hub.is_full:
        return JSONResponse({"error": f"{MOST_LISTENERS} pages listen already; close one"}, 503, {"retry-after": "10"})
    return Changes(console, files)


def _logs_of(job: StartedJob) -> Sequence[Path]:
    """The logs of the newest attempt, which may not be there yet; none of a job that runs elsewhere."""
    return [file.path for file in select(job, None, None, None, None).files] if is_here(job) else ()


OPERATIONS = (
    Operation(
        "/api/events",
        "Server-sent events: `jobs` with those that changed or went, `stale` where a page has to load the table again, "
        "`log` when the log of `job` has grown, `beat` every 10 s.",
        (Parameter("job", "string", "The job whose log is watched."),),
        stream=_events,
    ),
)
