"""A job of this machine, seen from any process."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BackendError, EstimatorError, JobNotFound
from ...values.home import JobFolder, jobs_folder, reading, regular_file
from ..port import Summary
from ..status import not_deleted
from .job_folder import listing, logs, windows
from .job_folder.hold import Hold, NotOurs
from .job_folder.record import Record
from .job_folder.registry import read
from .job_folder.supervision import is_supervisor, signal_supervisor, supervisors
from .watch import Watch

if TYPE_CHECKING:
    import subprocess

    from estimator_container.logs.lines import Block

    from ..port import OnEvent, OnOpenLine

LEAVING_SECONDS = 30.0  # that a supervisor whose folder was removed may take to end its hosts
ELSEWHERE_SECONDS = 0.5
"""Between two looks at files that another machine writes: a network file system tells nobody of changes."""
leaving: dict[str, subprocess.Popen[bytes]] = {}
"""Supervisors of jobs that have ended, by the job's name: they remove what the hosts had."""


@atexit.register
def wait_until_gone() -> None:
    """Wait until nothing is left of the jobs that this process has seen end but their files.

    A program that ends waits for it: where the end of its first process ends all others, as in a container, nobody
    would be left to do it.
    """
    with contextlib.suppress(KeyboardInterrupt):
        while leaving:
            leaving.popitem()[1].wait()


def attach(name: str) -> LocalJob:
    """The job of that name in the user's home. Raises JobNotFound, and EstimatorError for a record that is damaged."""
    job = LocalJob(JobFolder.for_job(name))
    with reading():
        job.record()
    return job


def jobs(backend: str | None = None, limit: int | None = None) -> list[LocalJob]:
    """The jobs of the user's home, the newest first, at most `limit`; with a name those of that backend.

    Warns of one whose state cannot be understood, and leaves it out. Raises EstimatorError.
    """
    folder = jobs_folder()
    with reading():
        found = listing.summaries(folder)
    chosen = [each for each in found if backend in (None, each.backend)][:limit]
    return [LocalJob(folder, summary=each) for each in chosen]


class LocalJob:
    """A job of this machine, seen from any process."""

    def __init__(
        self,
        folder: JobFolder | Path,
        supervisor: subprocess.Popen[bytes] | None = None,
        summary: Summary | None = None,
    ) -> None:
        """`summary` is what a list has just said of it: then the folder that has those of all jobs will do."""
        if isinstance(folder, JobFolder):
            self.folder = folder
        else:
            self._of_all = folder
        self._summary = summary
        # Kept so that the ended supervisor is collected, in the process that started it.
        self._supervisor = supervisor
        self._read_at: tuple[int, int] | None = None
        self._record: Record | None = None

    @cached_property
    def folder(self) -> JobFolder:
        """The job's own, named when it is asked for: for a long list of jobs that would take a sixth of the time."""
        assert self._summary is not None
        return JobFolder(self._of_all / self._summary.name)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def path(self) -> Path:
        return self.folder.path

    def request(self) -> dict[str, Any]:
        """The job as a CreateTrainingJob document; secrets are hidden. Raises EstimatorError where it is damaged."""
        path = self.folder.request
        try:
            with open(path, encoding="utf-8", opener=regular_file) as file:
                document: dict[str, Any] = dict(json.load(file))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            what = f"the request of the job {self.name} cannot be read: {path}: {error!r}"
            raise EstimatorError(f"{what}; its logs and outputs are in {self.path}") from None
        return document

    def log_files(self) -> list[Path]:
        """The framed logs, one a host and attempt."""
        record = self.record()
        left = [self.folder.left(attempt) for attempt in range(1, record.attempt + 1)]
        attempts = [place for place in left if place.exists()]
        attempts += [self.folder.hosts] if len(attempts) < record.attempt else []
        return [logs.log_file(hosts, host) for hosts in attempts for host in record.hosts]

    def record(self) -> Record:
        """The state of the job now: it is read again only after a change, for a log that is followed asks often."""
        changed = _changed(self.folder.record)
        known = self._record if changed is not None and changed == self._read_at else None
        if known is None or not (known.is_final or (known.supervisor is not None and known.supervisor.is_alive())):
            known = read(self.folder)
            if self._record is not None and self._record.supervisor != known.supervisor:
                raise JobNotFound(f"the job {self.name} was removed, and {self.folder.path} now belongs to another job")
        self._record, self._read_at = known, changed
        if known.is_final:
            self._let_go()
        return known

    def wait(self, timeout: float | None = None) -> Record:
        """Wait for the end of the job, at most `timeout` seconds; returns its state then."""
        deadline = None if timeout is None else time.monotonic() + timeout
        watch = self._watch()
        try:
            while not (record := self.record()).is_final:
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    break
                watch.wait(remaining)
            return record
        finally:
            watch.close()

    def blocks(
        self, follow: bool, on_event: OnEvent | None = None, on_open_line: OnOpenLine | None = None
    ) -> Iterator[Block]:
        """The job's log lines: those there are, or with `follow` all until the job has ended."""
        return (
            logs.follow(self.folder, self.record, self._watch(), on_event, on_open_line)
            if follow
            else logs.read(self.folder, self.record(), on_event)
        )

    def stop(self) -> None:
        """Ask the supervisor to stop the job, and return; nothing happens if the job has ended.

        Raises BackendError where the job is another user's, or is supervised on another machine.
        """
        record = self.record()
        if not record.is_final and record.supervisor is not None:
            if where := self._elsewhere(record):
                what = f"{self.name} is supervised on {where}; stop it there: `estimator stop {self.name}`"
                raise BackendError(f"{what}. If {where} is no more, neither is the job: remove {self.path}")
            signal_supervisor(record.supervisor, self.folder, signal.SIGTERM)

    def ask_for_window(self, request: str) -> None:
        windows.ask(self.folder, self.record().hosts, request)

    def withdraw_window(self) -> None:
        windows.withdraw(self.folder, self.record().hosts)

    def add_output(self, name: str, text: str) -> Path:
        return windows.add_output(self.folder, self.record().hosts[0], name, text)

    def summary(self) -> Summary:
        """What a list shows of the job: what the list has said that it comes from, if it comes from one."""
        return self._summary or Summary.from_state(self.record())

    def delete(self) -> None:
        """Remove the job's folder, with its logs and all outputs that are not in a store, and free its name.

        Raises EstimatorError for a job that has not ended, BackendError for files that this user may not remove, and
        where only another machine can say whether it has, and JobNotFound where another process was quicker.
        """
        record = self.record()
        hold = Hold(self.folder)
        if not record.is_final and (where := self._elsewhere(record)):
            what = f"{self.name} has not ended as far as is known here, and only {where} can say more"
            raise BackendError(f"{what}; delete it there or, if {where} is no more, remove {self.path}")
        if not record.is_final:
            raise not_deleted(self.name, record.status)
        for process in supervisors(self.folder):  # it has written the end, and removes what the hosts had
            process.wait(LEAVING_SECONDS)
        _remove_leftovers(self.path.parent)
        going = self.path.with_name(f".{self.name}.{os.getpid()}")  # no name of a job: it is gone for all at once
        try:
            hold.check()
            self.path.rename(going)
        except (NotOurs, FileNotFoundError):
            raise JobNotFound(f"the job {self.name} was removed by another process") from None
        except OSError as error:
            raise BackendError(f"{self.name} could not be removed: {error}; remove {self.path} yourself") from None
        _remove(going)

    def _watch(self) -> Watch:
        record = self.record()
        if self._elsewhere(record):
            watch = Watch(longest=ELSEWHERE_SECONDS)
        else:
            watch = Watch(record.supervisor.pid if record.supervisor else None)
        watch.add(self.folder.path)
        return watch

    def _elsewhere(self, record: Record) -> str:
        """The machine that alone can say whether the job has ended; empty where this one can."""
        supervisor = record.supervisor
        if supervisor is None or not supervisor.is_elsewhere or is_supervisor(supervisor, self.folder):
            return ""
        return supervisor.machine

    def _let_go(self) -> None:
        """Leave the supervisor to itself, and collect those that have ended since they were."""
        if self._supervisor is not None:
            leaving[self.name], self._supervisor = self._supervisor, None
            for name, supervisor in list(leaving.items()):
                if supervisor.poll() is not None:
                    leaving.pop(name, None)


def _remove(folder: Path) -> None:
    """Raises BackendError for what this user may not remove."""
    import shutil  # most who ask a job delete none

    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise BackendError(f"not all of it could be removed: {error}; remove {folder} yourself") from None


def _remove_leftovers(jobs: Path) -> None:
    """Remove what a `delete` left that was ended in its middle."""
    for folder in jobs.glob(".*.*"):
        pid = folder.name.rpartition(".")[2]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            with contextlib.suppress(BackendError):
                _remove(folder)


def _changed(path: Path) -> tuple[int, int] | None:
    """What tells a file from the one that took its place; None for one that is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
