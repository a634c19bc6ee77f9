"""`estimator describe [JOB]`: show all that is known of a job."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict

from ....job.job import Job
from ... import answer, job_argument
from ...job_ledger import ledger_of
from ...parser import Parser


def add(parser: Parser) -> None:
    job_argument.add(parser)


def run(arguments: Namespace) -> int:
    job = job_argument.find(arguments)
    answer.show(arguments, _document(job), _lines(job))
    return 0


def _document(job: Job) -> dict[str, object]:
    verdict, ledger = job.verdict, ledger_of(job)
    return {
        **answer.of_job(job),
        "reason": job.reason,
        "verdict": asdict(verdict) if verdict else None,
        "attempts": [asdict(attempt) for attempt in job.attempts],
        "ledger": ledger.to_json() if ledger else None,
        "model_data": job.model_data,
        "log_files": job.log_files,
        "request": job.request,
    }


def _lines(job: Job) -> Iterator[str]:
    yield f"job       {job.name}"
    yield f"status    {job.status}{f': {job.reason}' if job.reason else ''}"
    yield f"backend   {job.backend}, {len(job.hosts)} hosts: {', '.join(job.hosts)}"
    yield f"created   {_when(job.created)}"
    yield f"ended     {_when(job.ended)}"
    ledger = ledger_of(job)
    if ledger is not None:
        yield f"goodput   {ledger.sentence().removeprefix('goodput ')}"
    for attempt in job.attempts:
        how = f", failed: {attempt.verdict.message}" if attempt.verdict else ""
        yield f"attempt   {attempt.number}: {_when(attempt.began)} to {_when(attempt.ended)}{how}"
    resources = job.request.get("ResourceConfig", {})
    yield f"instance  {resources.get('InstanceType', 'local')}"
    for name, value in sorted((job.request.get("HyperParameters") or {}).items()):
        yield f"parameter {name} = {value}"
    yield f"model     {job.model_data or '-'}"
    for path in job.log_files:
        yield f"log       {path}"


def _when(seconds: float | None) -> str:
    return "-" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
