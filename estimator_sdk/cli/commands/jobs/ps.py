"""`estimator ps`: list the jobs."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import get_args

from ....backends.port import Summary
from ....backends.status import Status
from ....job.listing import summaries
from ... import answer
from ...parser import Parser, count


def add(parser: Parser) -> None:
    parser.add_argument(
        "--backend",
        help="only the jobs of one backend; by default a service is asked about jobs that were submitted from here",
    )
    parser.add_argument("--status", choices=get_args(Status), help="only the jobs with this status")
    parser.add_argument("-n", "--limit", metavar="N", type=count, help="only the newest N")


def run(arguments: Namespace) -> int:
    found = summaries(arguments.backend, None if arguments.status else arguments.limit)
    jobs = [job for job in found if arguments.status in (None, job.status)][: arguments.limit]
    if arguments.json:  # either is made only where it is asked for: there may be many jobs
        answer.show(arguments, [answer.of_job(job) for job in jobs], ())
    else:
        rows = [["JOB", "STATUS", "BACKEND", "HOSTS", "STARTED", "TIME"], *map(_row, jobs)]
        answer.show(arguments, None, answer.table(rows))
    return 0


def _row(job: Summary) -> list[str]:
    created, ended = job.created, job.ended
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(created)) if created else "-"
    seconds = "-" if created is None else f"{(ended or time.time()) - created:.0f} s"
    return [job.name, job.status, job.backend, str(len(job.hosts)), started, seconds]
