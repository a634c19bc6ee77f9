"""`estimator fit FILE`: run the job that a file describes, in our own form or that of a `riseml.yml`."""

from __future__ import annotations

from argparse import Namespace

from .. import backend_argument, execution
from ..parser import Parser


def add(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="the job file, such as job.yaml or riseml.yml")
    parser.add_argument("--from-step", metavar="NAME", help="the step to begin with, by its name or number")
    backend_argument.add(parser, "the file's choice")
    parser.add_argument("--job-name", metavar="NAME", help="the job's name (default: a new one)")
    execution.add_options(parser)


def run(arguments: Namespace) -> int:
    from ... import job_files

    file = job_files.read(arguments.file, from_step=arguments.from_step, backend=arguments.backend)
    return execution.execute(file.plan(arguments.job_name), arguments)
