"""The logs of a job: pages of lines, searches, downloads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from anyio import to_thread
from estimator_container.logs.frames import NO_RANK
from starlette.responses import JSONResponse, Response

from ..logs import page, pieces, search
from ..logs.download import text_of
from ..logs.selection import decode, encode, rank_of, select
from .lasting import while_there
from .operation import Operation, Parameter

if TYPE_CHECKING:
    from estimator_container.logs.lines import Line
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from ..logs.selection import Selection
    from ..state import Console
    from .operation import Values

MOST_DOWNLOADS = 4
"""That are under way at a time."""
_WIDTH = 4000  # characters of a line that are sent; a download has the whole
_CHOICE = (
    Parameter("attempt", "integer", "The number of an attempt; the newest without it.", None, 1),
    Parameter("host", "string", "Only lines of this host."),
    Parameter("rank", "integer", "Only lines of this rank."),
    Parameter("stream", "string", "Only lines of this stream: stdout, stderr or toolkit."),
)


def _selection(console: Console, values: Values) -> Selection:
    job = console.job(values.job)
    return select(job, values.number("attempt"), values.text("host"), values.number("rank"), values.text("stream"))


def _page(console: Console, values: Values) -> object:
    selection = _selection(console, values)
    limit = values.number("limit") or 200
    before, after, at = values.text("before"), values.text("after"), values.real("at")
    if at is not None:
        found = page.forward(selection, pieces.places_at(selection, int(at * 1e9)), limit)
    elif after is not None:
        found = page.forward(selection, {} if after == "start" else decode(after), limit)
    else:
        found = page.backward(selection, None if before is None else decode(before), limit)
    return {
        "lines": [_document(each.line, is_whole=each.is_whole) for each in found.lines],
        "open": [_document(each, is_whole=True) for each in found.open],
        "before": encode(found.before),
        "after": encode(found.after),
        "is_start": found.is_start,
        "is_end": found.is_end,
        "size": sum(pieces.size_of(file.path) for file in selection.files),
    }


def _document(line: Line, *, is_whole: bool) -> dict[str, object]:
    # A character has at most four bytes: what is cut off here would not be shown.
    text = line.data[: 4 * _WIDTH + 4].decode("utf-8", "backslashreplace").rstrip("\n")
    return {
        "time": line.time_ns / 1e9,
        "host": line.host,
        "rank": line.rank if line.rank is None else rank_of(line.rank),
        "stream": line.stream,
        "text": text[:_WIDTH],
        "bytes": len(line.data),
        "is_cut": not is_whole or len(text) > _WIDTH or len(line.data) > 4 * _WIDTH + 4,
    }


def _search(console: Console, values: Values) -> object:
    selection = _selection(console, values)
    before = values.text("before")
    found = search.search(selection, values.text("text") or "", None if before is None else decode(before))
    return {
        "lines": [_document(each.line, is_whole=each.is_whole) for _, each in found.lines],
        "before": encode(found.to),
        "is_over": found.is_over,
        "searched": found.searched,
    }


def _written(console: Console, values: Values) -> Selection:
    """The lines of a download: without a world, those of a host and a stream are the script's alone, as of a rank."""
    selection = _selection(console, values)
    if len(selection.files) > 1 or selection.stream is None or selection.rank is not None:
        return selection
    state = console.job(values.job).record()
    story = console.story(state.name, state.created, values.number("attempt") or max(1, len(state.attempts)))
    story.update(selection)
    return replace(selection, rank=NO_RANK) if story.ranks_of(selection.files[0].host) == {None} else selection


async def _download(console: Console, values: Values, request: Request) -> Response:
    selection = await to_thread.run_sync(_written, console, values, limiter=console.threads_for(values.job))
    if console.downloads >= MOST_DOWNLOADS:
        what = f"{MOST_DOWNLOADS} downloads are under way; wait for one of them to end"
        return JSONResponse({"error": what}, 503, {"retry-after": "5"})
    words = (values.job, values.text("host"), values.number("rank"), values.text("stream"))
    name = "-".join(str(word) for word in words if word is not None)
    return Download(console, text_of(selection), f"{name}.log")


class Download(Response):
    """A file that is made while it is sent, a piece at a time, as fast as its reader takes it and no faster."""

    def __init__(self, console: Console, pieces: Iterator[bytes], name: str) -> None:
        super().__init__(media_type="application/octet-stream")
        del self.headers["content-length"]
        self.headers["content-disposition"] = f'attachment; filename="{name}"'
        self._console = console
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; one whose reader leaves is given up."""
        self._console.downloads += 1
        try:
            await while_there(receive, self._send(send))
        finally:
            self._console.downloads -= 1

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        while piece := await to_thread.run_sync(next, self._pieces, b"", limiter=self._console.threads):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


OPERATIONS = (
    Operation(
        "/api/jobs/{job}/logs",
        "Lines, merged by time: the last ones, those before or behind a cursor, or those of a time.",
        (
            *_CHOICE,
            Parameter("before", "string", "`before` of another answer: the lines in front of it."),
            Parameter("after", "string", "`after` of another answer, or `start`: the lines behind it."),
            Parameter("at", "number", "Seconds since 1970: the lines from then on."),
            Parameter("limit", "integer", "Lines of one answer.", 200, 1, page.MOST_LINES),
        ),
        _page,
    ),
    Operation(
        "/api/jobs/{job}/logs/search",
        "Lines that have some words, upper or lower case, the newest first. Go on with `before` until `is_over`.",
        (
            *_CHOICE,
            Parameter("text", "string", f"The words, at most {search.MOST_WORDS} characters."),
            Parameter("before", "string", "`before` of the answer before."),
        ),
        _search,
    ),
    Operation(
        "/api/jobs/{job}/logs/download",
        "All of these lines; those of one host, rank and stream as it wrote them, others with their origin.",
        _CHOICE,
        stream=_download,
    ),
)
