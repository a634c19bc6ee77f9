"""Start a plan and show the job to its end, for every command that starts one."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract.names import EXIT_STOPPED

from ..errors import BackendError, EstimatorError, InvalidArgument, JobFailed, JobNotFound
from . import answer
from .main import EXIT_INTERRUPTED
from .parser import Parser

if TYPE_CHECKING:
    from ..job.job import Job
    from ..plan.plan import Plan

GITHUB_SUMMARY = "GITHUB_STEP_SUMMARY"  # "Adding a job summary", GitHub Actions documentation


def add_options(parser: Parser) -> None:
    """The options that say how a job is started and shown; `execute` reads them."""
    parser.add_argument("--dry-run", action="store_true", help="print the plan and start nothing")
    parser.add_argument("--detach", action="store_true", help="return as soon as the job is started")
    parser.add_argument("--logs", choices=["all", "rank0", "none"], default="all", help="whose lines to show")
    parser.add_argument("--junit", metavar="FILE", help="write the result as JUnit XML, a test case for each rank")
    parser.add_argument(
        "--summary", metavar="FILE", help=f"write the result as Markdown (default: add it to ${GITHUB_SUMMARY}, if set)"
    )


def execute(plan: Plan, arguments: Namespace) -> int:
    """Run a plan to its end, or as the options say; returns the exit code of the command (see `exit_code_of`).

    With `--json` the answer on standard output is one document about the job, and all lines go to standard error.
    Ctrl-C asks the job to stop and waits for its end. Raises InvalidArgument, with nothing started, for files of
    results that cannot be written.
    """
    if arguments.dry_run:
        show_plan(plan, arguments)
        return 0
    _check_files(arguments)
    from ..estimator import launch

    out = sys.stderr if arguments.json else sys.stdout
    try:
        job = launch.run(plan, not arguments.detach, arguments.logs, out)
    except JobFailed as failed:
        print(f"estimator: {failed}", file=sys.stderr)
    except KeyboardInterrupt:
        return _interrupted(plan, arguments)
    if arguments.detach:
        return _detached(job, arguments)
    return _ended(plan, arguments)


def _detached(job: Job, arguments: Namespace) -> int:
    try:
        answer.show(arguments, {"name": job.name, "status": job.status, "backend": job.backend}, [job.name])
    except EstimatorError as error:
        raise EstimatorError(f"the job {job.name} has been started, but {error}") from None
    return 0


def _interrupted(plan: Plan, arguments: Namespace) -> int:
    """The job has been stopped, or a second Ctrl-C leaves it to stop by itself, or there is none yet."""
    from ..job.job import Job

    try:
        job = Job.attach(plan.job_name)
    except JobNotFound:
        return EXIT_INTERRUPTED
    if job.status == "InProgress":
        job.stop()  # which does nothing to a job that was asked already, and may not say so yet
    return _ended(plan, arguments, EXIT_INTERRUPTED)


def _ended(plan: Plan, arguments: Namespace, code: int | None = None) -> int:
    """Write what was asked for of a job's end; returns `code`, or the job's own exit code.

    1 in the place of 0 where the files of results could not be written.
    """
    from ..job.job import Job

    job = Job.attach(plan.job_name)
    chosen = exit_code_of(job) if code is None else code
    try:
        _write_results(job, plan, chosen, arguments)
    except BackendError as error:
        print(f"estimator: {error}", file=sys.stderr)
        chosen = chosen or 1
    if arguments.json:
        answer.show_if_possible(arguments, result(job, chosen), [])
    return chosen


def show_plan(plan: Plan, arguments: Namespace) -> None:
    """The answer of a dry run."""
    answer.show(arguments, asdict(plan.without_secrets()), [str(plan)])


def result(job: Job, code: int) -> dict[str, object]:
    """What `--json` says of a job that was followed to its end."""
    verdict = job.verdict
    return {
        "name": job.name,
        "status": job.status,
        "exit_code": code,
        "reason": job.reason,
        "verdict": asdict(verdict) if verdict else None,
        "attempts": len(job.attempts),
        "model_data": job.model_data,
    }


def exit_code_of(job: Job) -> int:
    """That of the first failing rank's command, and 128 and the number where a signal ended it.

    0 for a job that is completed, 143 for one that was stopped, and 1 for one that failed otherwise.
    """
    if job.status == "Completed":
        return 0
    if job.status == "Stopped":
        return EXIT_STOPPED
    verdict = job.verdict
    if verdict is None:
        return 1
    if verdict.signal is not None:
        return 128 + getattr(signal, verdict.signal, signal.SIGKILL)
    return verdict.exit_code or 1


def _check_files(arguments: Namespace) -> None:
    for option in ("junit", "summary"):
        given = getattr(arguments, option)
        if given is None:
            continue
        if arguments.detach:
            what = f"--{option} reports how the job ended, but --detach does not wait"
            raise InvalidArgument(option, f"{what}; leave one of them out")
        path = Path(given)
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InvalidArgument(option, f"--{option} {given!r} cannot be written; name a file in a writable folder")


def _write_results(job: Job, plan: Plan, code: int, arguments: Namespace) -> None:
    """Raises BackendError where the disk does not take them; the job has ended all the same."""
    github = os.environ.get(GITHUB_SUMMARY)
    if not (arguments.junit or arguments.summary or github):
        return
    from .job_ledger import ledger_of
    from .reports import junit, summary

    ledger = ledger_of(job)
    told = summary.markdown(job, plan.without_secrets(), code, ledger).encode("utf-8", "backslashreplace")
    try:
        if arguments.junit:
            Path(arguments.junit).write_bytes(junit.document(job, plan, ledger))
        if arguments.summary:
            Path(arguments.summary).write_bytes(told)
        elif github:
            with Path(github).open("ab") as file:
                file.write(told)
    except OSError as error:
        raise BackendError(f"the job {job.name} is {job.status}, but its results cannot be written: {error}") from None
