"""The argument JOB of the commands that ask a job."""

from __future__ import annotations

from argparse import Namespace

from ..errors import JobNotFound
from ..job.job import Job
from ..job.listing import list_jobs
from ..values.job_name import checked
from .parser import Parser


def add(parser: Parser, *, may_be_newest: bool = True) -> None:
    """Add JOB; it may be left out where the newest job of this machine will do."""
    if may_be_newest:
        parser.add_argument(
            "job", metavar="JOB", nargs="?", help="the job's name (default: the newest on this machine)"
        )
    else:
        parser.add_argument("job", metavar="JOB", help="the job's name")


def find(arguments: Namespace) -> Job:
    """The job that is meant. Raises InvalidArgument for what is not a name, and JobNotFound, with the nearest name."""
    if arguments.job is not None:
        return Job.attach(checked(arguments.job))
    newest = list_jobs(limit=1)
    if not newest:
        raise JobNotFound("there is no job on this machine yet; start one with `estimator run`")
    return newest[0]
