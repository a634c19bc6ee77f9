"""What a command answers on standard output: lines for people, or one JSON document."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..job import Job


def show(arguments: Namespace, document: object, lines: Iterable[str]) -> None:
    """Write `document` with `--json`, else `lines`."""
    if arguments.json:
        lines = [json.dumps(document, indent=1, default=str)]
    encoding = sys.stdout.encoding or "utf-8"
    for line in lines:  # a word of a command need not be text
        sys.stdout.write(f"{line.encode(encoding, 'backslashreplace').decode(encoding)}\n")
    sys.stdout.flush()


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines with their columns below each other.

    >>> table([["NAME", "STATUS"], ["a-long-name", "Failed"]])
    ['NAME         STATUS', 'a-long-name  Failed']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = ((cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return ["  ".join(row).rstrip() for row in cells]


def of_job(job: Job) -> dict[str, object]:
    """What `ps` and `describe` both say of a job."""
    return {
        "name": job.name,
        "status": job.status,
        "backend": job.backend,
        "hosts": job.hosts,
        "created": job.created,
        "ended": job.ended,
    }
