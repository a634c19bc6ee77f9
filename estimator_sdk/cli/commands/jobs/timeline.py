"""`estimator timeline [JOB]`: write the steps and phases of a job as a trace for Perfetto."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from ... import answer, job_argument
from ...parser import Parser


def add(parser: Parser) -> None:
    job_argument.add(parser)
    parser.add_argument("--output", metavar="FILE", help="where it goes (default: JOB-timeline.json in this folder)")


def run(arguments: Namespace) -> int:
    from ....job import trace

    job = job_argument.find(arguments)
    made = trace.make(job.started)
    path = Path(arguments.output or f"{job.name}-timeline.json")
    path.write_text(json.dumps(made), encoding="utf-8")
    document = {"name": job.name, "file": str(path), "events": len(made["traceEvents"])}
    answer.show(arguments, document, [f"{path} (open it at https://ui.perfetto.dev or chrome://tracing)"])
    return 0
