"""What is known of a job of this machine: what its folder says, and whether who writes there is still at work."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict, last_words

from ....errors import JobNotFound
from ....values.debugging import is_debug_output
from ....values.home import JobFolder
from ....values.job_name import is_name
from ....values.naming import suggestion
from .record import Record, read_record
from .supervision import is_supervisor


def read(folder: JobFolder) -> Record:
    """The last state of a job.

    A job whose supervisor is gone before it wrote the end has failed; of one that another machine supervises, this one
    cannot say that. Raises JobNotFound when there is no such job, and EstimatorError when its record cannot be
    understood.
    """
    return judged(last(folder), folder)


def judged(record: Record, folder: JobFolder) -> Record:
    """The state of a job whose folder has just told this. Raises as `read`."""
    if record.is_final or _is_supervised(record, folder):
        return record
    record = last(folder)  # it may have written the end just before it left
    if record.is_final:
        return record
    if record.supervisor is not None and record.supervisor.is_elsewhere:
        where = record.supervisor.machine
        return replace(record, reason=f"its supervisor is on {where}; whether it still runs, only {where} can say")
    return _failed(record, _abandoned(record, folder))


def names(jobs: Path) -> list[str]:
    """The folders in that of the jobs whose names a job may have, in no order. Raises OSError but for a missing one."""
    try:
        with os.scandir(jobs) as entries:
            return [entry.name for entry in entries if is_name(entry.name)]
    except FileNotFoundError:
        return []


def last(folder: JobFolder) -> Record:
    """What the job's folder says. Raises as `read`."""
    record = read_record(folder) if folder.path.exists() else None
    if record is None:
        raise _not_found(folder)
    return record


def _is_supervised(record: Record, folder: JobFolder) -> bool:
    return record.supervisor is not None and is_supervisor(record.supervisor, folder)


def _abandoned(record: Record, folder: JobFolder) -> Verdict:
    """What is said of a job that nobody supervises any more, with the last words of who did."""
    if record.supervisor is None:
        what = f"the record of {record.name} names no supervisor, so nothing is running it"
    else:
        what = f"the supervisor of {record.name} (process {record.supervisor.pid}) ended without a result"
        what = f"{what}, and its hosts with it"
    words = ""
    with suppress(OSError):
        said = folder.supervisor_log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        words = last_words("".join(line for line in said if not is_debug_output(line)))
    return Verdict(Kind.PLATFORM, f"{what}; see {folder.supervisor_log}", detail=words)


def _failed(record: Record, verdict: Verdict) -> Record:
    if record.attempts and record.attempts[-1].ended is None:
        record = record.with_attempt(verdict=verdict)
    return replace(record, status="Failed", verdict=verdict)


def _not_found(folder: JobFolder) -> JobNotFound:
    jobs = folder.path.parent
    if folder.path.is_dir():
        what = "has no record of a job, so it was removed or is not written yet"
        return JobNotFound(f"the folder {folder.path} {what}; if no process uses it, remove the rest")
    known = names(jobs)
    hint = f"; {suggestion(folder.name, known)}" if known else ""
    return JobNotFound(f"there is no job {folder.name!r} in {jobs}{hint}")
