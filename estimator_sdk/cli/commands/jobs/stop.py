"""`estimator stop JOB`: ask for the end of a job."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress

from ....backends.status import FINAL
from ....errors import JobFailed
from ... import answer, job_argument
from ...parser import Parser


def add(parser: Parser) -> None:
    job_argument.add(parser, may_be_newest=False)
    parser.add_argument("--wait", action="store_true", help="return only when the job has ended")


def run(arguments: Namespace) -> int:
    job = job_argument.find(arguments)
    job.stop()
    if arguments.wait:
        with suppress(JobFailed):  # which is an end, and `estimator why` tells of it
            job.wait()
    status = job.status
    words = f"{job.name} is {status}" if status in FINAL else f"{job.name} was asked to stop"
    answer.show(arguments, {"name": job.name, "status": status}, [words])
    return 0
