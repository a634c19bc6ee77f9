"""A job on Slurm, seen from any machine that shares its folder: what the folder says, and what Slurm does."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract.events import ServiceStatus
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict, last_words

from ...errors import BackendError, EstimatorError, JobNotFound
from ..port import OnEvent, OnOpenLine, Summary
from ..supervised.job import LocalJob
from ..supervised.job_folder import registry
from ..supervised.job_folder.record import Record, read_record, write_record
from ..supervised.watch import Watch
from . import accounting, queue
from .files import SlurmFolder

if TYPE_CHECKING:
    from estimator_container.logs.lines import Block

LOOK_SECONDS = 0.2
"""Between two looks at files: a network file system tells nobody of changes that another machine makes."""
STOPPING_SECONDS = 1.0
"""Between two looks at the queue while somebody waits for a job to stop."""
LAST_WORD_SECONDS = 5.0
"""That such a file system may take to show what a node wrote before it was done."""
SUBMISSION_SECONDS = 4 * queue.ANSWER_SECONDS
"""After which a client that still runs has either heard of a job's number or given up."""
_LEAVING = ("COMPLETING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")
"""The states of a job that is being taken off its nodes: a signal would reach nothing, and scancel waits for longer."""
LONG_OVER_SECONDS = 60.0
"""After the end that Slurm names, which may be the beginning of its KillWait, nothing more is to come."""


class SlurmJob(LocalJob):
    """A job on Slurm."""

    folder: SlurmFolder

    def __init__(self, folder: SlurmFolder) -> None:
        super().__init__(folder)
        self._is_told_to_stop = False
        self._submitted: float | None = None
        """When it was first seen that Slurm has given the job a number."""
        self._over_since: float | None = None
        """When it was first seen that Slurm has done with the job, though the folder does not say how it ended."""

    def record(self) -> Record:
        """The state of the job now. Raises JobNotFound, and EstimatorError for a record that is damaged."""
        record = registry.last(self.folder)
        if self._record is not None and self._record.created != record.created:
            raise JobNotFound(f"the job {self.name} was removed, and {self.path} now belongs to another job")
        if not record.is_final:
            record = self._judged(record)
        self._record = record
        return record

    def created(self) -> float | None:
        """When the job was created; None where that cannot be understood."""
        try:
            record = read_record(self.folder)
        except EstimatorError:
            return None
        return record.created if record is not None else None

    def blocks(
        self, follow: bool, on_event: OnEvent | None = None, on_open_line: OnOpenLine | None = None
    ) -> Iterator[Block]:
        """As those of any job; who follows is told first why it waits in the queue."""
        if follow and on_event is not None:
            self._wait_in_queue(on_event)
        yield from super().blocks(follow, on_event, on_open_line)

    def _wait_in_queue(self, on_event: OnEvent) -> None:
        told, watch = "", self._watch()
        try:
            while True:
                queue.look(in_line=True)  # before anybody asks for this user's jobs alone
                record = self.record()
                if record.is_final or record.attempt:
                    return
                why = self._why_pending()
                if why not in (told, ""):
                    told = why
                    on_event("", ServiceStatus("pending", told))
                watch.wait()
        finally:
            watch.close()

    def _why_pending(self) -> str:
        number = self.folder.read_number()
        if number is None:
            return self._how_to_submit()
        if not self.is_here:
            return ""
        known = (queue.look() or {}).get(number)
        return known.why_pending if known is not None and known.is_waiting else ""

    def _how_to_submit(self) -> str:
        """What starts a job whose script was exported; empty for any other."""
        with suppress(OSError):
            return f"submit it with `sbatch {shlex.quote(self.folder.exported.read_text(encoding='utf-8'))}`"
        return ""

    def summary(self) -> Summary:
        return Summary.from_state(self.record())

    def stop(self) -> None:
        record = self.record()
        number = self.folder.read_number()
        if record.is_final:
            return
        is_here = self.is_here
        if is_here is False:
            its = self.folder.read_cluster()
            hint = f"stop it on a machine of that cluster, or with SLURM_CLUSTERS={its}"
            raise BackendError(f"{self.name} was submitted on cluster {its}; {hint}")
        if is_here is None:
            what = f"{self.name} was not stopped: Slurm's controller does not say which cluster this machine belongs to"
            raise BackendError(f"{what}; see `scontrol ping`, and try again")
        self._is_told_to_stop = True
        with suppress(OSError):
            self.folder.stop_request.touch(0o600)  # before the signal, for a supervisor that is about to run
        if number is None and self.folder.exported.exists():
            self._kept(_stopped(record, "stopped by the user"))  # a script that is submitted now finds that
        elif number is None:
            return  # it is being submitted, and stops as soon as it starts
        else:
            self._stop_at_slurm(number)

    def _stop_at_slurm(self, number: int) -> None:
        known = (queue.look(0.0) or {}).get(number)
        if known is not None and known.is_waiting:
            queue.cancel(number)  # nothing of it runs, also where it was put back in the queue
        elif known is None or known.state not in _LEAVING:  # else whoever looks next cancels it, if it comes again
            queue.cancel(number, "--batch", "--signal=INT")  # to the supervisor alone, which stops the job

    def _elsewhere(self, record: Record) -> str:
        return f"cluster {self.folder.read_cluster()}" if self.is_here is False else ""

    @property
    def is_here(self) -> bool | None:
        """Whether this machine's cluster is the job's; None if that is not known."""
        its = self.folder.read_cluster()
        return queue.talks_to(its) if its else True

    def _watch(self) -> Watch:
        watch = Watch(longest=LOOK_SECONDS)
        watch.add(self.folder.path)
        return watch

    def _judged(self, record: Record) -> Record:
        """The record of a job that goes on or, where Slurm has done with it, of one that has ended."""
        number = self.folder.read_number()
        if number is None:
            return self._being_submitted(record)
        is_here = self.is_here
        if is_here is False:
            where = f"cluster {self.folder.read_cluster()}"
            return replace(record, reason=f"it was submitted on {where}, and only that can say whether it still runs")
        if is_here is None:
            return replace(record, reason="unknown, because Slurm's controller does not answer; see `scontrol ping`")
        if self._submitted is None:
            self._submitted = time.monotonic()
        jobs = queue.look(STOPPING_SECONDS if self._is_told_to_stop else None)
        if jobs is None:
            return replace(record, reason=_unknown())  # nobody can say: that is no failure
        known = jobs.get(number)
        if known is None:
            if self._is_new(record) or not queue.has_asked_since(self._submitted):
                return record  # Slurm may have been asked before it had the job
        elif not known.is_over:
            self._over_since = None
            if known.is_waiting and self.folder.stop_request.exists():
                with suppress(BackendError):
                    queue.cancel(number)  # it was told to before it was there, or while Slurm took it off its nodes
            return _with_why_pending(record, known)
        elif record.attempt and not self._has_said_all(known):
            return record
        record = registry.last(self.folder)
        if record.is_final:
            return record
        if known is None:
            try:
                known = accounting.find(number)
            except BackendError as error:  # nobody can say, as above
                return replace(
                    record, reason=f"unknown, because job {number} is over at Slurm's controller, and {error}"
                )
            if known is not None and not known.is_over and not self._is_long_forgotten():
                return record  # the accounting may hear of an end later
        return self._kept(_ended(record, number, known, self.folder))

    def _being_submitted(self, record: Record) -> Record:
        """The record of a job that has no number yet; it failed if who was submitting it is long gone."""
        if time.time() - record.created < SUBMISSION_SECONDS or self.folder.exported.exists():
            return replace(record, reason=self._how_to_submit())
        what = f"{record.name} has no number at Slurm: who was submitting it ended before it had one"
        return self._kept(_over(record, status="Failed", verdict=Verdict(Kind.PLATFORM, what)))

    def _kept(self, ended: Record) -> Record:
        with suppress(OSError):
            write_record(ended, self.folder)  # Slurm forgets
            self.folder.given.unlink(missing_ok=True)
        return ended

    def _has_said_all(self, known: queue.Queued) -> bool:
        if self._over_since is None:
            self._over_since = time.monotonic()
        if known.ended is not None and abs(time.time() - known.ended) > LONG_OVER_SECONDS:
            return True  # also to who looks once
        return time.monotonic() - self._over_since >= LAST_WORD_SECONDS

    def _is_long_forgotten(self) -> bool:
        """Whether it was seen some time ago, by whatever process, that Slurm's controller does not know it any more."""
        try:
            self.folder.forgotten.touch(0o600, exist_ok=False)
        except FileExistsError:
            return time.time() - self.folder.forgotten.stat().st_mtime >= LONG_OVER_SECONDS
        except OSError:
            return True
        return False

    def _is_new(self, record: Record) -> bool:
        return time.time() - record.created < queue.ASK_AGAIN_SECONDS


def _ended(record: Record, number: int, known: queue.Queued | None, folder: SlurmFolder) -> Record:
    """The record of a job whose supervisor left no word of its end."""
    state = known.state if known is not None else ""
    job = f"job {number} of Slurm"
    if state.startswith("CANCELLED") and folder.stop_request.exists():
        return _stopped(record, "stopped by the user")
    if state.startswith("CANCELLED"):
        return _stopped(record, f"{job} was cancelled{accounting.by_whom(number)}")
    if state == "TIMEOUT":
        return _stopped(record, f"{job} reached Slurm's time limit")
    what = {
        "NODE_FAIL": (Kind.HOST_LOST, f"a node of {job} failed"),
        "OUT_OF_MEMORY": (Kind.OUT_OF_MEMORY, f"{job} needed more memory than it was granted"),
        "PREEMPTED": (Kind.PREEMPTED, f"{job} was preempted, and is not started again"),
        "BOOT_FAIL": (Kind.HOST_LOST, f"a node of {job} did not boot"),
        "DEADLINE": (Kind.PLATFORM, f"{job} could not be done before its deadline"),
    }
    words = _last_words(folder.supervisor_log)
    if state == "FAILED" and words and not record.attempt:  # its script has said why, which will not change
        what[state] = (Kind.CONFIGURATION, f"{job} ended before the supervisor of {record.name} began")
    kind, message = what.get(state, (Kind.PLATFORM, f"the supervisor of {record.name} ended without a result"))
    if state not in what:
        message = f"{message}; {job} is {state or 'no longer known'}"
    verdict = Verdict(kind, f"{message}; see {folder.supervisor_log}", detail=words)
    return _over(record, status="Failed", verdict=verdict)


def _with_why_pending(record: Record, known: queue.Queued) -> Record:
    """The record, with why the job waits, for who does not follow it."""
    if record.reason or not known.is_waiting or not known.why_pending:
        return record
    return replace(record, reason=f"pending: {known.why_pending}")


def _unknown() -> str:
    since = queue.silent_since()
    if since is None:
        return ""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))
    return f"unknown since {when}, because Slurm's controller does not answer; see `scontrol ping`"


def _stopped(record: Record, reason: str) -> Record:
    return _over(record, status="Stopped", reason=reason)


def _over(record: Record, **changes: object) -> Record:
    if record.attempts and record.attempts[-1].ended is None:
        record = record.with_attempt(ended=time.time(), verdict=changes.get("verdict"))
    return replace(record, ended=time.time(), **changes)  # type: ignore[arg-type]


def _last_words(log: Path) -> str:
    try:
        return last_words(log.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
