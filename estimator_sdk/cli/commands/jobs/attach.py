"""`estimator attach [JOB]`: follow a running job to its end."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TextIO

from ....values.standard_streams import put
from ... import answer, execution, job_argument
from ...main import EXIT_INTERRUPTED
from ...parser import Parser
from ...reports import log_choice


def add(parser: Parser) -> None:
    job_argument.add(parser)
    log_choice.add(parser)


def run(arguments: Namespace) -> int:
    """Shows all lines from the first; returns the job's exit code. Ctrl-C leaves the job alone.

    A reader that has enough ends it, as it ends `logs`; an output that takes nothing does not.
    """
    job = job_argument.find(arguments)
    out = sys.stderr if arguments.json else sys.stdout
    try:
        for line in log_choice.lines(job, arguments, follow=True):
            _show(out, log_choice.shown(line, arguments))
    except KeyboardInterrupt:
        print(f"estimator attach: {job.name} is still running; `estimator stop {job.name}` ends it", file=sys.stderr)
        return EXIT_INTERRUPTED
    code = execution.exit_code_of(job)
    if code != 0:
        print(f"estimator attach: {job.why().rstrip()}", file=sys.stderr)
    answer.show_if_possible(arguments, execution.result(job, code), [f"{job.name} is {job.status}"])
    return code


def _show(out: TextIO, line: bytes) -> None:
    try:
        put(out, line)
    except BrokenPipeError:
        raise
    except OSError:
        pass
