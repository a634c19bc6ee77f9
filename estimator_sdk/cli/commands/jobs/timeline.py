"""`estimator timeline [JOB]`: write the steps and phases of a job as a trace for Perfetto."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from ....errors import InvalidArgument
from ....values import strict_json
from ... import answer, job_argument
from ...parser import Parser


def add(parser: Parser) -> None:
    job_argument.add(parser)
    parser.add_argument("--output", metavar="FILE", help="where it goes (default: JOB-timeline.json in this folder)")
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=float,
        help="have a job that runs record N seconds in detail: each step, and Horovod's timeline or PyTorch's profile",
    )


def run(arguments: Namespace) -> int:
    from ....job.traces import trace, window

    job = job_argument.find(arguments)
    path = _output(arguments.output, f"{job.name}-timeline.json")
    if arguments.seconds is None:
        made = trace.make(job.started)
        notes: tuple[str, ...] = ()
        kept = None
    else:
        recorded = window.record(job.started, arguments.seconds)
        made, notes, kept = recorded.trace, recorded.notes, recorded.kept
    path.write_text(strict_json.dumps(made), encoding="utf-8")
    document = {"name": job.name, "file": str(path), "events": len(made["traceEvents"]), "notes": notes, "kept": kept}
    lines = [f"{path} (open it at https://ui.perfetto.dev or chrome://tracing)", *notes]
    answer.show(arguments, document, lines)
    return 0


def _output(given: str | None, default: str) -> Path:
    """Where the trace goes. Raises InvalidArgument before anything is recorded that could not be written."""
    path = Path(given or default)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidArgument("output", f"--output {str(path)!r} cannot be written; name a file in a writable folder")
    return path
