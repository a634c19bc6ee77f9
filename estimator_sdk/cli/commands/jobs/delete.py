"""`estimator delete JOB`: remove all that is kept of a job that has ended."""

from __future__ import annotations

from argparse import Namespace

from ... import answer, job_argument
from ...parser import Parser


def add(parser: Parser) -> None:
    job_argument.add(parser, may_be_newest=False)


def run(arguments: Namespace) -> int:
    job = job_argument.find(arguments)
    name = job.name
    job.delete()
    answer.show(arguments, {"name": name}, [f"{name} is deleted; what it wrote to a store is kept"])
    return 0
