"""The client's side of a local job: start its supervisor, and reach the job from any process."""

from __future__ import annotations

import atexit
import contextlib
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_container.logs.lines import Block

from ...errors import BackendError, EstimatorError, InvalidArgument, JobNotFound
from ...plan.plan import Plan
from ...values.debugging import debug
from ...values.home import JobFolder, private_file, regular_file, secured, write_private
from . import detached
from .job_folder import logs
from .job_folder.record import Process, Record, write_record
from .job_folder.registry import read
from .job_folder.supervision import signal_supervisor, supervisors
from .stopping import STOPPED_BY
from .watch import Watch

if TYPE_CHECKING:
    from ..port import OnEvent, OnOpenLine

MAIN = str(Path(__file__).parent)
LEAVING_SECONDS = 30.0  # that a supervisor whose folder was removed may take to end its hosts
_leaving: dict[str, subprocess.Popen[bytes]] = {}
"""Supervisors of jobs that have ended, by the job's name: they remove what the hosts had."""


@atexit.register
def wait_until_gone() -> None:
    """Wait until nothing is left of the jobs that this process has seen end but their files.

    A program that ends waits for it: where the end of its first process ends all others, as in a container, nobody
    would be left to do it.
    """
    with contextlib.suppress(KeyboardInterrupt):
        while _leaving:
            _leaving.popitem()[1].wait()


def start(plan: Plan) -> LocalJob:
    """Hand a plan to a supervisor of its own, and return without waiting for it.

    Raises InvalidArgument when a job of that name exists, and BackendError when the disk does not take the job's
    folder or its record.
    """
    folder = JobFolder.of(plan.job_name)
    earlier = _leaving.pop(plan.job_name, None)
    if earlier is not None:  # that job's folder was removed, and its name is free
        earlier.wait()
    output = f"{plan.output_path}/{plan.job_name}/output"
    record = Record(
        plan.job_name,
        "InProgress",
        plan.backend,
        tuple(host.name for host in plan.hosts),
        time.time(),
        output=output,
    )
    try:
        supervisor = _start(plan, folder, record)
    except OSError as error:
        raise BackendError(
            f"the job {plan.job_name} could not be started: {error}; set ESTIMATOR_HOME to a folder that you may "
            "write, with room"
        ) from None
    debug("%s: the supervisor is process %d, its folder %s", plan.job_name, supervisor.pid, folder.path)
    assert supervisor.stdin is not None
    # One that was killed takes no plan: the state of the job says so, to everybody.
    with contextlib.suppress(BrokenPipeError), supervisor.stdin as pipe:
        pipe.write(plan.to_json().encode())
    return LocalJob(folder, supervisor)


def _start(plan: Plan, folder: JobFolder, record: Record) -> subprocess.Popen[bytes]:
    secured(folder.path.parent)
    try:
        folder.path.mkdir(mode=0o700)
    except FileExistsError:
        raise InvalidArgument(
            "job_name",
            f"job_name {plan.job_name!r} is taken by the job in {folder.path}; choose another name",
        ) from None
    supervisor = None
    try:
        shown = plan.without_secrets()
        write_private(folder.plan, f"{shown}\n", errors="backslashreplace")
        write_private(folder.request, json.dumps(shown.request, indent=1))
        with open(folder.supervisor_log, "wb", opener=private_file) as log:
            supervisor = detached.start(MAIN, str(folder.path), log, blocked=STOPPED_BY)
        # Who it is, is known before it says a word: so one that never does is missed.
        _wait_for_earlier(folder, supervisor.pid)
        write_record(replace(record, supervisor=Process.started_as(supervisor.pid)), folder)
    except BaseException:
        if supervisor is not None:
            supervisor.kill()
            supervisor.communicate()
        shutil.rmtree(folder.path, ignore_errors=True)  # nothing of a job that never was, not even its name
        raise
    return supervisor


def _wait_for_earlier(folder: JobFolder, supervisor: int) -> None:
    """Raises InvalidArgument where an earlier job of that name, whose folder was removed, does not end."""
    for earlier in supervisors(folder):
        if earlier.pid == supervisor:
            continue
        earlier.wait(LEAVING_SECONDS)
        if earlier.is_alive():
            what = f"an earlier job {folder.name!r}, whose folder was removed, still runs as process {earlier.pid}"
            raise InvalidArgument("job_name", f"job_name: {what}; end that process, or choose another name")


class LocalJob:
    """A job of this machine, seen from any process."""

    def __init__(self, folder: JobFolder, supervisor: subprocess.Popen[bytes] | None = None) -> None:
        self.folder = folder
        # Kept so that the ended supervisor is collected, in the process that started it.
        self._supervisor = supervisor
        self._read_at: tuple[int, int] | None = None
        self._record: Record | None = None

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
        attempts = [self.folder.left(attempt) for attempt in range(1, record.attempt)]
        attempts += [self.folder.hosts] if record.attempt else []
        return [logs.log_file(hosts, host) for hosts in attempts for host in record.hosts]

    def record(self) -> Record:
        """The state of the job now: it is read again only after a change, for a log that is followed asks often."""
        changed = _changed(self.folder.record)
        known = self._record if changed is not None and changed == self._read_at else None
        if known is None or not (known.is_final or (known.supervisor is not None and known.supervisor.is_alive())):
            known = read(self.folder)
            if self._record is not None and self._record.supervisor != known.supervisor:
                raise JobNotFound(f"the job {self.name} was removed, and {self.folder.path} is that of another job now")
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

        Raises BackendError where the job is another user's.
        """
        record = self.record()
        if not record.is_final and record.supervisor is not None:
            signal_supervisor(record.supervisor, self.folder, signal.SIGTERM)

    def _watch(self) -> Watch:
        supervisor = self.record().supervisor
        watch = Watch(supervisor.pid if supervisor else None)
        watch.add(self.folder.path)
        return watch

    def _let_go(self) -> None:
        """Leave the supervisor to itself, and collect those that have ended since they were."""
        if self._supervisor is not None:
            _leaving[self.name], self._supervisor = self._supervisor, None
            for name, supervisor in list(_leaving.items()):
                if supervisor.poll() is not None:
                    _leaving.pop(name, None)


def _changed(path: Path) -> tuple[int, int] | None:
    """What tells a file from the one that took its place; None for one that is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
