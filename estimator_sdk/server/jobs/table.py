"""The table of the jobs: which ones, in which order, a page at a time."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import InvalidArgument
from ...values.naming import suggestion

if TYPE_CHECKING:
    from ...backends.port import Summary

MOST_ROWS = 500
"""Jobs of one page."""
_Key = tuple[float | str, str]
_SORTS: dict[str, Callable[[Summary], float | str]] = {
    "created": lambda job: job.created or 0.0,
    "name": lambda job: job.name,
    "status": lambda job: job.status,
    "backend": lambda job: job.backend,
    "hosts": lambda job: float(len(job.hosts)),
    "seconds": lambda job: seconds_of(job) or 0.0,
}
_TEXTS = ("name", "status", "backend")


@dataclass(frozen=True)
class TablePage:
    """Some rows of the table."""

    rows: list[Summary]
    total: int
    """All that were asked for, on all pages."""
    next: str | None
    """The cursor of the next page; None after the last."""


def document_of(job: Summary) -> dict[str, object]:
    """A job as the API shows it in the table."""
    return {
        "name": job.name,
        "status": job.status,
        "backend": job.backend,
        "hosts": len(job.hosts),
        "created": job.created,
        "ended": job.ended,
    }


def seconds_of(job: Summary) -> float | None:
    """How long a job has run."""
    return None if job.created is None else max(0.0, (job.ended or time.time()) - job.created)


def page_of(
    jobs: Iterable[Summary], text: str, status: str, backend: str, sort: str, limit: int, cursor: str | None
) -> TablePage:
    """The jobs whose name has `text`, in the order of `sort`, which a `-` turns round.

    An empty filter lets all through. Raises InvalidArgument for a sort or a cursor that there is not.
    """
    name = sort.removeprefix("-")
    if name not in _SORTS:
        raise InvalidArgument("sort", f"sort {sort!r} is not known; {suggestion(name, _SORTS)}")
    key, folded = _SORTS[name], text.casefold()
    chosen = [
        ((key(job), job.name), job)
        for job in jobs
        if folded in job.name.casefold() and status in ("", job.status) and backend in ("", job.backend)
    ]
    is_down = sort.startswith("-")
    chosen.sort(key=lambda each: each[0], reverse=is_down)
    total = len(chosen)
    if cursor is not None:
        last = _decoded(cursor, str if name in _TEXTS else float)
        chosen = [each for each in chosen if (each[0] < last if is_down else each[0] > last)]
    rows = chosen[:limit]
    following = _encoded(rows[-1][0]) if len(chosen) > limit else None
    return TablePage([job for _, job in rows], total, following)


def _encoded(key: _Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _decoded(cursor: str, kind: type[float] | type[str]) -> _Key:
    try:
        value: float | str
        value, name = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
        if not isinstance(name, str) or not isinstance(value, kind):
            raise TypeError
        return (value, name)
    except (ValueError, TypeError, RecursionError):
        raise InvalidArgument("cursor", "cursor: this was not given by an earlier answer; leave it out") from None
