"""Why the training steps of a job are slow: what the doctor says of it, in words, numbers and a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.responses import Response

from ...job.diagnosis import diagnosis
from ..logs import pieces
from ..state import reckoned
from .operation import Operation

if TYPE_CHECKING:
    from starlette.requests import Request

    from ...job.diagnosis.diagnosis import Diagnosis
    from ..state import Console
    from .operation import Values


def _found(console: Console, values: Values) -> Diagnosis:
    job = console.job(values.job)
    size = pieces.check_whole(job.name, job.log_files(), f"estimator doctor {job.name}")
    return reckoned(console.diagnoses, job, size, diagnosis.make)


def _diagnosis(console: Console, values: Values) -> object:
    found = _found(console, values)
    return {"words": str(found), **found.to_json()}


async def _picture(console: Console, values: Values, request: Request) -> Response:
    found = await to_thread.run_sync(_found, console, values, limiter=console.threads_for(values.job, is_slow=True))
    return Response(found.to_svg(), media_type="image/svg+xml")


OPERATIONS = (
    Operation(
        "/api/jobs/{job}/diagnosis",
        "Why the training steps of a job are slow, as `estimator doctor` says it: `words` as a screen shows them, and "
        "the same in numbers.",
        (),
        _diagnosis,
        is_slow=True,
    ),
    Operation(
        "/api/jobs/{job}/diagnosis/picture",
        "Where the time of a step goes, as a picture in SVG: a bar for each rank.",
        (),
        stream=_picture,
    ),
)
