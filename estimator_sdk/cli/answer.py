"""What a command answers on standard output: lines for people, or one JSON document."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..errors import EstimatorError, InvalidArgument
from ..values.standard_streams import put

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from ..backends.port import Summary
    from ..job.job import Job


def show(arguments: Namespace, document: object, lines: Iterable[str]) -> None:
    """Write `document` with `--json`, else `lines`. A number that is not finite is null in JSON. Raises as `write`."""
    if arguments.json:
        from ..values.strict_json import dumps

        lines = [dumps(document, indent=1, default=str)]
    write("".join(f"{line}\n" for line in lines))


def show_if_possible(arguments: Namespace, document: object, lines: Iterable[str]) -> None:
    """As `show`, for a command that returns a job's exit code even if its answer cannot be written."""
    try:
        show(arguments, document, lines)
    except BrokenPipeError:
        pass
    except EstimatorError as error:
        print(f"estimator: {error}", file=sys.stderr)


def write(what: str | bytes) -> None:
    """Write to standard output. Raises EstimatorError if that fails, and BrokenPipeError for `main`."""
    try:
        put(sys.stdout, what)
    except BrokenPipeError:
        raise
    except OSError as error:
        what = f"the answer cannot be written to standard output: {error.strerror}"
        raise EstimatorError(f"{what}; free some space, or send it elsewhere") from None


def file_to_write(option: str, given: str) -> Path:
    """The file that an option names. Raises InvalidArgument before anything is done that could not be written there."""
    from pathlib import Path  # most commands write none

    path = Path(given)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidArgument(option, f"--{option} {given!r} cannot be written; name a file in a writable folder")
    return path


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines with their columns below each other.

    >>> table([["NAME", "STATUS"], ["a-long-name", "Failed"]])
    ['NAME         STATUS', 'a-long-name  Failed']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join(f"{{:<{width}}}" for width in widths)
    return [line.format(*row).rstrip() for row in rows]


def of_job(job: Job | Summary) -> dict[str, object]:
    """What `ps` and `describe` both say of a job."""
    from ..backends.port import Summary  # most commands answer something else

    return {fact: getattr(job, fact) for fact in Summary._fields}
