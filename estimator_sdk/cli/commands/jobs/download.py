"""`estimator download [JOB]`: download a job's model."""

from __future__ import annotations

from argparse import Namespace

from ... import answer, job_argument
from ...parser import Parser
from ...reports.progress_bar import Bar


def add(parser: Parser) -> None:
    job_argument.add(parser)
    parser.add_argument("--to", metavar="DIR", default=".", help="where its files go; created if missing")


def run(arguments: Namespace) -> int:
    job = job_argument.find(arguments)
    if job.model_data is not None and not job.model_data.startswith("file://"):
        with Bar(f"downloading {job.model_data}") as bar:
            folder = job.download(arguments.to, bar)
    else:
        folder = job.download(arguments.to)
    answer.show(arguments, {"name": job.name, "model_data": job.model_data, "folder": folder}, [str(folder)])
    return 0
