"""`estimator logs [JOB]`: show what the ranks of a job wrote."""

from __future__ import annotations

import sys
from argparse import Namespace

from ... import answer, job_argument
from ...parser import Parser
from ...reports import log_choice

_AT_ONCE = 1 << 16  # bytes that are written together, where nobody waits for a line


def add(parser: Parser) -> None:
    job_argument.add(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="keep showing new lines until the job has ended")
    log_choice.add(parser)


def run(arguments: Namespace) -> int:
    """The bytes are written as they are, so that what a rank wrote can be had whole."""
    job = job_argument.find(arguments)
    is_any = False
    pending = bytearray()
    for line in log_choice.lines(job, arguments, arguments.follow):
        is_any = True
        pending += log_choice.shown(line, arguments)
        if arguments.follow or len(pending) >= _AT_ONCE:
            answer.write(bytes(pending))
            pending.clear()
    answer.write(bytes(pending))
    if not is_any:
        state = f"{job.status}, {job.reason}" if job.reason else job.status  # such as what it waits for
        print(f"estimator logs: no line in the log of {job.name} matches ({state})", file=sys.stderr)
    return 0
