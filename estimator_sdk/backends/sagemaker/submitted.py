"""A note of each job that was submitted here: in which region it is, and what was last heard of it.

So its name alone finds it again, and it can be listed where nobody is asked.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from ...values.home import home, regular_file, replace_private, secured, write_private, writing
from ...values.job_name import checked, is_name
from ..port import Summary
from ..status import FINAL, Status

_STATUSES = get_args(Status)


@writing("the note of where the job runs")
def note(job_name: str, region: str) -> None:
    """Keep where a job is. Raises EstimatorError."""
    place = _place(job_name)
    secured(place.parent)
    write_private(place, json.dumps({"region": region}))


def remember(summary: Summary) -> None:
    """Keep what was heard of a job that was submitted from here; of any other, nothing."""
    if not is_name(summary.name):
        return  # the service may have others' with names that ours are not
    place = _place(summary.name)
    known = _read(place)
    if known is None or _summary(summary.name, known) == summary:
        return
    known |= {"status": summary.status, "hosts": summary.hosts, "created": summary.created, "ended": summary.ended}
    with contextlib.suppress(OSError):  # what is not kept is asked for again
        replace_private(place, json.dumps(known))


def forget(job_name: str) -> None:
    """A job is no more."""
    with contextlib.suppress(OSError):
        _place(job_name).unlink()


def unfinished(job_name: str) -> Path | None:
    """The note of a job that had not ended when it was last heard of, so that it may still run; None for any other."""
    place = _place(job_name)
    known = _read(place)
    summary = _summary(job_name, known) if known is not None else None
    return place if summary is not None and summary.status not in FINAL else None


def region_of(job_name: str) -> str | None:
    """The region of a job that was submitted from here; None for any other, and where the note is damaged."""
    known = _read(_place(job_name))
    region = known.get("region") if known is not None else None
    return region if isinstance(region, str) else None


def summaries() -> Iterator[Summary]:
    """What was last heard of the jobs that were submitted from here, in no order. Raises EstimatorError."""
    names = [path.stem for path in _folder().glob("*.json")]
    for name in filter(is_name, names):
        known = _read(_folder() / f"{name}.json")
        summary = _summary(name, known) if known is not None else None
        if summary is not None:
            yield summary


def _summary(name: str, known: dict[str, Any]) -> Summary | None:
    """None where nothing has been heard of the job, as where the service refused it, and for a damaged note."""
    try:
        if known["status"] not in _STATUSES:
            return None
        created, ended = (None if known[key] is None else float(known[key]) for key in ("created", "ended"))
        return Summary(name, known["status"], _folder().name, tuple(map(str, known["hosts"])), created, ended)
    except (LookupError, TypeError, ValueError):
        return None


def _read(place: Path) -> dict[str, Any] | None:
    """None for a note that cannot be read, which says no more than none."""
    try:
        with open(place, encoding="utf-8", opener=regular_file) as file:
            known = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return known if isinstance(known, dict) else None


def _place(job_name: str) -> Path:
    return _folder() / f"{checked(job_name)}.json"


def _folder() -> Path:
    return home() / "sagemaker"
