"""What is known of the jobs of this machine: what their database says, and their folders where it knows nothing.

A job's folder is its claim to its name, and has a copy of its record. From that a job is known again whose database
is lost, and one of a version of the SDK that had no database. A running job of such a version is followed there until
its end, for its supervisor writes nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from estimator_container.failures.verdict import Verdict, last_words

from ....errors import EstimatorError, JobNotFound
from ....values.home import JobFolder, jobs_of
from ....values.job_name import is_name
from ....values.naming import suggestion
from .record import Copy, Record, copies_in, read_copy, write_copy
from .state import State
from .supervision import is_supervisor


def claim(record: Record, folder: JobFolder) -> None:
    """Write the first state of a job that has just got its folder. Raises OSError.

    Raises StillRuns, with nothing written, where another job of that name goes on without its folder.
    """
    State.of(folder.state).claim(record)
    write_copy(record, folder)


def write(record: Record, folder: JobFolder) -> None:
    """Make this the state of a job. Raises OSError, and NotOurs, with nothing written, where it is another's by now.

    The copy comes second: who watches the folder and sees it change finds the change in the database. It comes also
    where the database takes nothing, so that the end of a job is known.
    """
    try:
        State.of(folder.state).put(record)
    except (OSError, EstimatorError):
        write_copy(record, folder)
        raise
    write_copy(record, folder)


def read(folder: JobFolder) -> Record:
    """The last state of a job.

    A job whose supervisor is gone before it wrote the end has failed. Raises JobNotFound when there is no
    such job, and EstimatorError when its state cannot be read.
    """
    record = _last(folder)
    supervisor = record.supervisor
    if record.is_final or (supervisor is not None and is_supervisor(supervisor, folder)):
        return record
    record = _last(folder)  # it may have written the end just before it left
    if record.is_final:
        return record
    copy = read_copy(folder)
    if copy is not None and copy.record.is_final:  # the database did not take it, or a power cut took it from there
        with suppress(OSError):
            State.of(folder.state).put(copy.record)
        return copy.record
    return _failed(record, _abandoned(record, folder))


def read_all(state: Path) -> list[Record]:
    """All jobs of a database and their folders, the newest first; their supervisors may be gone.

    A job whose folder was removed is none any more, and a folder whose name no job may have never was one. Warns of
    one that cannot be understood. Raises EstimatorError.
    """
    folders = {path.name: JobFolder(path) for path in _folders(jobs_of(state))}
    if not folders:
        return []
    known: dict[str, Record] = {}
    with suppress(OSError):  # as below
        known = {record.name: record for record in State.of(state).all()}
    copies, unreadable = copies_in(folder for name, folder in folders.items() if name not in known)
    _adopt(state, copies)
    for sentence in unreadable:
        warnings.warn(sentence, stacklevel=2)
    records = [*(known[name] for name in folders if name in known), *(copy.record for copy in copies)]
    return sorted(records, key=lambda record: record.created, reverse=True)


def _last(folder: JobFolder) -> Record:
    if not folder.path.exists():
        raise _not_found(folder)
    trouble = None
    try:
        record = State.of(folder.state).get(folder.name)
    except OSError as error:  # where SQLite cannot write, on a full disk, it cannot read
        record, trouble = None, error
    if record is not None:
        return record
    copy = read_copy(folder)
    if copy is None:
        if trouble is not None:
            raise EstimatorError(f"the state of the job {folder.name} cannot be read: {trouble}") from None
        raise _not_found(folder)
    _adopt(folder.state, [copy])
    return copy.record


def _folders(jobs: Path) -> Iterator[Path]:
    return (path for path in jobs.glob("*") if is_name(path.name))


def _adopt(state: Path, copies: list[Copy]) -> None:
    """Let the database know these jobs from now on, if it can take them."""
    records = [copy.record for copy in copies if not copy.is_followed]
    if records:
        with suppress(OSError):
            State.of(state).add(records)


def _abandoned(record: Record, folder: JobFolder) -> Verdict:
    """What is said of a job that nobody supervises any more, with the last words of who did."""
    if record.supervisor is None:
        what = f"the record of {record.name} names no supervisor, so nobody runs it"
    else:
        what = f"the supervisor of {record.name} (process {record.supervisor.pid}) ended without a result"
        what = f"{what}, and its hosts with it"
    words = ""
    with suppress(OSError):
        words = last_words(folder.supervisor_log.read_text(encoding="utf-8", errors="replace"))
    return Verdict("platform", f"{what}; see {folder.supervisor_log}", detail=words)


def _failed(record: Record, verdict: Verdict) -> Record:
    if record.attempts and record.attempts[-1].ended is None:
        record = record.with_attempt(verdict=verdict)
    return replace(record, status="Failed", verdict=verdict)


def _not_found(folder: JobFolder) -> JobNotFound:
    jobs = folder.path.parent
    known = [path.name for path in _folders(jobs)]
    hint = f"; {suggestion(folder.name, known)}" if known else ""
    return JobNotFound(f"there is no job {folder.name!r} in {jobs}{hint}")
