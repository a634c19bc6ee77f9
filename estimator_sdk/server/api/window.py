"""Windows of a job's timeline in detail: to ask for one, how far it is, and its trace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.responses import JSONResponse, Response

from ...errors import EstimatorError, JobNotFound
from ...job.traces import window
from ...values.home import regular_file
from ..logs.download import PIECE
from .logs import MOST_DOWNLOADS, Download
from .operation import Operation, Parameter

if TYPE_CHECKING:
    from starlette.requests import Request

    from ..state import Console
    from .operation import Values


def _begin(console: Console, values: Values) -> object:
    return {"said": console.windows.begin(console.job(values.job), values.real("seconds") or 10.0)}


def _state(console: Console, values: Values) -> object:
    return console.windows.state(console.job(values.job))


def _pieces(console: Console, values: Values) -> Iterator[bytes]:
    """Opens it at once, so that a trace that is not there is said before anything is sent."""
    job = console.job(values.job)
    path = window.kept(job)
    if path is None:
        raise JobNotFound(f"{job.name} has no trace of a window; ask for one while it runs")
    try:
        fd = regular_file(str(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise EstimatorError(f"the trace of {job.name} cannot be read: {error}") from None
    return _read(fd)


def _read(fd: int) -> Iterator[bytes]:
    with os.fdopen(fd, "rb") as file:
        while piece := file.read(PIECE):
            yield piece


async def _download(console: Console, values: Values, request: Request) -> Response:
    pieces = await to_thread.run_sync(_pieces, console, values, limiter=console.threads_for(values.job))
    if console.downloads >= MOST_DOWNLOADS:
        what = f"{MOST_DOWNLOADS} downloads are under way; wait for one of them to end"
        return JSONResponse({"error": what}, 503, {"retry-after": "5"})
    return Download(console, pieces, f"{values.job}-{window.FILE}")


OPERATIONS = (
    Operation(
        "/api/jobs/{job}/window",
        "How far the last window is that was asked for here: what it has not is in `said`; `size` is that of the trace "
        "in the outputs of the job, null where there is none.",
        (),
        _state,
    ),
    Operation(
        "/api/jobs/{job}/window",
        "Have the ranks of a job that runs record in detail what they do, as `estimator timeline --seconds` does.",
        (Parameter("seconds", "number", "How long.", 10.0, 1, int(window.MOST_SECONDS)),),
        _begin,
        method="POST",
    ),
    Operation(
        "/api/jobs/{job}/window/trace",
        "The trace of the last window, which Perfetto opens.",
        (),
        stream=_download,
    ),
)
