"""A note of each job that was submitted here: in which region it is, so that its name alone finds it again."""

from __future__ import annotations

import json
from pathlib import Path

from ...values.home import home, secured, write_private, writing
from ...values.job_name import checked


@writing("the note of where the job runs")
def note(job_name: str, region: str) -> None:
    """Keep where a job is. Raises EstimatorError."""
    place = _place(job_name)
    secured(place.parent)
    write_private(place, json.dumps({"region": region}))


def region_of(job_name: str) -> str | None:
    """The region of a job that was submitted from here; None for any other, and where the note is damaged."""
    try:
        region = json.loads(_place(job_name).read_text(encoding="utf-8"))["region"]
    except (OSError, ValueError, KeyError, TypeError):  # a note that cannot be read says no more than none
        return None
    return region if isinstance(region, str) else None


def _place(job_name: str) -> Path:
    return home() / "sagemaker" / f"{checked(job_name)}.json"
