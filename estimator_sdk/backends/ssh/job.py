"""A job on a pool, seen from this machine: what has been copied here, and what the first machine says."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract.reserved import OWN_PREFIX
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from ...errors import BackendError, EstimatorError, JobNotFound
from ..port import Summary
from ..supervised.job import LocalJob
from ..supervised.job_folder import registry
from ..supervised.job_folder.record import Record, read_record, write_record
from ..supervised.watch import Watch
from .files import SshFolder, Whereabouts, waiting_file

if TYPE_CHECKING:
    from estimator_container.logs.lines import Block

    from ..port import OnEvent, OnOpenLine
    from .mirror import Mirror
    from .session.connection import Session

LOOK_SECONDS = 0.5
"""The longest that the first machine waits for a change before it says that there is none."""
UNREACHABLE_SECONDS = 15.0
"""Without an answer, after which who follows the job is told so: a connection that was cut is mostly back by then."""
QUEUE = f"{OWN_PREFIX}queue"
"""The hyperparameter of a job that waits for machines."""
STARTING_SECONDS = 600.0
"""After which a job whose record does not say who starts it is taken for one that nobody starts any more."""


class SshJob(LocalJob):
    """A job on a pool."""

    folder: SshFolder

    def __init__(self, folder: SshFolder, session: Session | None = None) -> None:
        """`session` is one to the job's machine that is open already."""
        super().__init__(folder)
        self._session = session
        self._mirror: Mirror | None = None
        self._whereabouts: Whereabouts | None = None
        self._on_event: OnEvent | None = None
        """Who follows the job at the moment."""
        self._unknown_since: float | None = None
        """Since when nothing new is known of the job."""
        self._why_unknown = self._why_warned = ""
        self._has_told = False

    def record(self) -> Record:
        """The state of the job now or, while its machine cannot be reached, as it was last known.

        At the end all that the job has left is here before it is said. Raises JobNotFound, BackendError where nothing
        is known yet, and EstimatorError for a record that is damaged.
        """
        record = registry.last(self.folder)
        if self._record is not None and self._record.created != record.created:
            raise JobNotFound(f"the job {self.name} was removed, and {self.path} now belongs to another job")
        if not record.is_final:
            record = self._updated(record, with_files=True)
        self._record = record
        return record

    def created(self) -> float | None:
        """When the job was created; None where that cannot be understood."""
        with suppress(EstimatorError):
            record = read_record(self.folder)
            return record.created if record is not None else None
        return None

    def summary(self) -> Summary:
        """What a list shows: outputs and measurements are not copied for that."""
        record = registry.last(self.folder)
        if not record.is_final:
            try:
                record = self._updated(record, with_files=False)
            except EstimatorError as error:  # all other jobs are shown
                self._warn(str(error))
        return Summary.from_state(record)

    def blocks(
        self, follow: bool, on_event: OnEvent | None = None, on_open_line: OnOpenLine | None = None
    ) -> Iterator[Block]:
        """As those of any job; who follows one that waits for machines is told first for whom."""
        self._on_event = on_event if follow else None
        if follow and on_event is not None and QUEUE in (self.request().get("HyperParameters") or {}):
            self._wait_for_machines()
        yield from super().blocks(follow, on_event, on_open_line)

    def _wait_for_machines(self) -> None:
        told = ""
        while not (record := self.record()).is_final and not record.attempt:
            with suppress(OSError):
                waits_for = waiting_file(self.folder).read_text(encoding="utf-8")
                if waits_for != told:
                    told = waits_for
                    self._tell("pending", told)
            self._wait_for_change(LOOK_SECONDS)

    def stop(self) -> None:
        from .session.connection import Unreachable

        if self.record().is_final:
            return
        try:
            self._connected().ask("stop")
        except Unreachable as error:
            hint = f"if it still runs, `estimator stop {self.name}` stops it once that machine answers"
            what = f"it is not known whether {self.name} was asked to stop: {error}"
            raise BackendError(f"{what}; {hint}") from None

    def ask_for_window(self, request: str) -> None:
        self._connected().ask("ask_for_window", request=request)

    def withdraw_window(self) -> None:
        with suppress(BackendError):
            self._connected().ask("withdraw_window")

    def add_output(self, name: str, text: str) -> Path:
        """As that of any job; it is here, too, where outputs are not copied before the end."""
        self._connected().add_output(name, text)
        return super().add_output(name, text)

    def delete(self) -> None:
        from .session.connection import Unreachable

        hint = f"try again later, or remove {self.path} to forget the job on this machine alone"
        record = self.record()
        if not record.is_final and self._unknown_since is not None:
            what = f"it is not known whether {self.name} has ended: {self._why_unknown}"
            raise BackendError(f"{what}; {hint}")
        if record.is_final and self._where() is not None:
            try:
                self._connected().ask("delete")
            except JobNotFound:
                pass
            except Unreachable as error:
                raise BackendError(f"{self.name} could not be deleted there: {error}; {hint}") from None
        super().delete()

    def _where(self) -> Whereabouts | None:
        if self._whereabouts is None:
            self._whereabouts = self.folder.read_whereabouts()
        return self._whereabouts

    def _connected(self) -> Mirror:
        if self._mirror is None:
            known = self._where()
            if known is None:
                raise BackendError(f"the job {self.name} is being started; try again when it is")
            from .mirror import Mirror  # who lists jobs that have ended need not load it

            self._mirror = Mirror(self.folder, known, self._session)
        return self._mirror

    def _watch(self) -> Watch:
        return _RemoteWatch(self._wait_for_change)

    def _wait_for_change(self, seconds: float) -> None:
        if self._where() is None:
            time.sleep(min(seconds, LOOK_SECONDS))
        else:
            self._connected().wait(min(seconds, LOOK_SECONDS))

    def _updated(self, record: Record, with_files: bool) -> Record:
        known = self._where()
        if known is None:
            return self._being_started(record, with_files)
        from .session.connection import Unreachable

        try:
            told = self._copied(record, known, with_files)
        except Unreachable as error:
            goes_on = f"the job goes on if {known.first}, where its supervisor is, still runs, and is asked again"
            self._nothing_new(str(error), f"{error}; {goes_on} until it answers. If it is lost, so is the job")
            return record
        except OSError as error:
            why = f"what is new of {self.name} cannot be copied here: {error}"
            self._nothing_new(why, f"{why}; it goes on, and is copied once there is room in a folder that is yours")
            return replace(record, reason=why)
        except JobNotFound as missing:
            return self._kept(_failed(record, str(missing)))
        self._reached(known)
        if told.is_final and with_files:
            self._connected().close()
        return told

    def _copied(self, record: Record, known: Whereabouts, with_files: bool) -> Record:
        """What the first machine says, once it is kept here with all that was written before."""
        from .mirror import as_here

        mirror = self._connected()
        with mirror.alone(waits=with_files):
            here = read_record(self.folder) or record
            if here.is_final:  # another client was quicker, and the outputs are where they were asked for
                return here
            fields = mirror.update(with_files)
            told = as_here(Record.from_fields({**fields, "name": self.name}), known, here)
            if told.is_final and with_files:
                told = self._with_outputs(told)
            if told != here and (with_files or not told.is_final):
                with suppress(OSError):
                    write_record(told, self.folder)
            return told

    def _nothing_new(self, why: str, message: str) -> None:
        self._why_unknown = why
        if self._unknown_since is None:
            self._unknown_since = self._mirror.heard_at if self._mirror else time.monotonic()
        is_late = time.monotonic() - self._unknown_since >= UNREACHABLE_SECONDS
        if self._on_event is None:
            self._warn(why)
        elif is_late and not self._has_told:
            self._has_told = True
            self._tell("unreachable", message)

    def _warn(self, why: str) -> None:
        """Tell it once to whoever does not follow the job, and so hears nothing else of it."""
        if why != self._why_warned:
            self._why_warned = why
            warnings.warn(f"{self.name} is shown as it was last known: {why}", stacklevel=2)

    def _reached(self, known: Whereabouts) -> None:
        if self._has_told:
            self._tell("running", f"{known.first} answers again")
        self._unknown_since, self._has_told, self._why_warned = None, False, ""

    def _tell(self, status: str, message: str) -> None:
        from estimator_container.contract.events import ServiceStatus  # most jobs wait for nobody

        if self._on_event is not None:
            self._on_event("", ServiceStatus(status, message))

    def _being_started(self, record: Record, with_files: bool) -> Record:
        """What is brought to the machines may take any time: who brings it says that it is done, or is gone."""
        client = record.supervisor
        if client is None and time.time() - record.created < STARTING_SECONDS:
            return record
        if client is not None and (client.is_elsewhere or client.is_alive()):
            return record
        if self._where() is not None:  # it said so, and then it ended
            return self._updated(record, with_files)
        return self._kept(_failed(record, f"{record.name} was not started: its client ended before that"))

    def _with_outputs(self, record: Record) -> Record:
        """Put the archives where they were asked for, if that is elsewhere on this machine."""
        place = Path(record.output.removeprefix("file://"))
        if not record.output.startswith("file://") or place == self.folder.output:
            return record
        try:
            if self.folder.output.is_dir():
                shutil.copytree(self.folder.output, place, dirs_exist_ok=True)
                shutil.rmtree(self.folder.output)
        except (OSError, shutil.Error) as error:
            what = f"the outputs could not be written to {place}: {error}; they are in {self.folder.output}"
            failed = Verdict(Kind.OUTPUTS, what)
            return replace(record, status="Failed", verdict=record.verdict or failed, model_data=None)
        return record

    def _kept(self, ended: Record) -> Record:
        with suppress(OSError):
            write_record(ended, self.folder)
        if self._mirror is not None:
            self._mirror.close()
        return ended


class _RemoteWatch(Watch):
    """As the other, but for what changes on the first machine."""

    def __init__(self, wait: Callable[[float], None]) -> None:
        super().__init__()
        self._wait_there = wait

    def wait(self, seconds: float | None = None) -> None:
        self._wait_there(LOOK_SECONDS if seconds is None else max(0.0, seconds))


def _failed(record: Record, what: str) -> Record:
    if record.attempts and record.attempts[-1].ended is None:
        record = record.with_attempt(ended=time.time())
    return replace(record, status="Failed", verdict=Verdict(Kind.PLATFORM, what), ended=time.time())
