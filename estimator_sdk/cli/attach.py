"""`estimator attach [JOB]`: follow a running job to its end."""

from __future__ import annotations

import sys
from argparse import Namespace

from . import answer, execution, exit_code, job_argument, log_choice
from .main import EXIT_INTERRUPTED
from .parser import Parser


def add(parser: Parser) -> None:
    job_argument.add(parser)
    log_choice.add(parser)


def run(arguments: Namespace) -> int:
    """Shows all lines from the first; returns the job's exit code. Ctrl-C leaves the job alone."""
    job = job_argument.find(arguments)
    out = sys.stderr.buffer if arguments.json else sys.stdout.buffer
    try:
        for line in log_choice.lines(job, arguments, follow=True):
            out.write(log_choice.shown(line, arguments))
            out.flush()
    except KeyboardInterrupt:
        print(f"estimator attach: {job.name} goes on; `estimator stop {job.name}` ends it", file=sys.stderr)
        return EXIT_INTERRUPTED
    code = exit_code.of(job)
    if code != 0:
        print(f"estimator attach: {job.why().rstrip()}", file=sys.stderr)
    answer.show(arguments, execution.result(job, code), [f"{job.name} is {job.status}"])
    return code
