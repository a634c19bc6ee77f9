"""`estimator timeline [JOB]`: write the steps and phases of a job as a trace for Perfetto."""

from __future__ import annotations

from argparse import Namespace

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
    path = answer.file_to_write("output", arguments.output or f"{job.name}-timeline.json")
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
