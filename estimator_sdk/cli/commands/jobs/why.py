"""`estimator why [JOB]`: say why a job ended as it did."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from ... import answer, job_argument
from ...parser import Parser


def add(parser: Parser) -> None:
    job_argument.add(parser)


def run(arguments: Namespace) -> int:
    job = job_argument.find(arguments)
    verdict = job.verdict
    document = {
        "name": job.name,
        "status": job.status,
        "reason": job.reason,
        "verdict": asdict(verdict) if verdict else None,
        "text": job.why(),
    }
    answer.show(arguments, document, [job.why().rstrip()])
    return 0
