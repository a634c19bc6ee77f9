"""A note of each job that was submitted here: in which region it is, so that its name alone finds it again."""

from __future__ import annotations

import json
from pathlib import Path

from ..home import home, secured, write_private


def note(job_name: str, region: str) -> None:
    """Keep where a job is."""
    place = _place(job_name)
    secured(place.parent)
    write_private(place, json.dumps({"region": region}))


def region_of(job_name: str) -> str | None:
    """The region of a job that was submitted from here; None for any other."""
    try:
        region: str = json.loads(_place(job_name).read_text(encoding="utf-8"))["region"]
    except FileNotFoundError:
        return None
    return region


def _place(job_name: str) -> Path:
    return home() / "sagemaker" / f"{job_name}.json"
