"""The process that owns a local job: starts its hosts, watches them, and records what becomes of it.

It is detached from the client that started it, so the job outlives that one. If the supervisor itself
is killed, its hosts see the end of a pipe that it holds, and end with it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from estimator_container.contract.events import AttemptFailed
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.runtime import reserve
from estimator_container.runtime.children import Children, become_subreaper
from estimator_container.runtime.loop import Loop

from ....plan.plan import Plan
from ....values.debugging import debug
from ....values.home import JobFolder, make_folder
from ...status import AttemptRecord, Status
from ..job_folder.hold import Hold, NotOurs
from ..job_folder.record import Process, Record, read_record, write_record
from ..stopping import STOPPED_BY
from . import outputs
from .allocation import Allocation
from .attempt import Attempt
from .hosts import HostsFactory
from .policy import AttemptEnd, rules_of
from .surroundings import Interruption, Surroundings, Undisturbed

RESERVE = 1 << 18  # bytes, for a record with the verdict of each of many attempts, and the end of the log


class Supervisor:
    """A job, from its plan to its final record, in one attempt or more."""

    def __init__(
        self,
        plan: Plan,
        folder: JobFolder,
        hold: Hold,
        factory: HostsFactory,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._plan = plan
        self._surroundings: Surroundings = surroundings or Undisturbed()
        self._is_interrupted = False
        self.comes_again = False
        """Whether the job was left to another supervisor that is started next."""
        self._folder = folder
        self._hold = hold
        self._factory = factory
        self._loop = Loop()
        self._children = Children(self._loop)
        self._stop_reason: str | None = None
        self._has_ended = False
        self._ends: list[AttemptEnd] = []
        """How the attempts before this one failed."""
        self._record = replace(_first_record(folder), supervisor=Process.from_pid(os.getpid()))
        self._attempt = self._new_attempt(self._record.attempt + 1)

    def run(self) -> None:
        """Run the job to its end; always leaves a final record, unless the job's folder was taken from it."""
        become_subreaper()
        for signum in STOPPED_BY:
            self._loop.on_signal(signum, lambda: self._stop("stopped by the user"))
        for signum in self._surroundings.interrupted_by:
            self._loop.on_signal(signum, self._interrupt)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPED_BY)
        try:
            found = self._run_to_verdict()
            interruption = self._surroundings.interruption() if self._is_interrupted else None
            if interruption is not None and interruption.comes_again:
                self._leave(interruption)
            else:
                self._finish(*self._result(found, interruption))
        except NotOurs as reason:
            print(reason, file=sys.stderr)
            self._attempt.allocation.wait_until_gone()

    def _run_to_verdict(self) -> Verdict | None:
        try:
            self._hold.watch(self._loop)
            reserve.keep(str(self._folder.reserve), RESERVE)
            if self._record.attempts:
                self._limit_time()
                self._take_over()
            try:
                return self._run_attempts()
            finally:
                self._attempt.allocation.end()
        except NotOurs:
            raise
        except Exception as error:  # whatever it is, the job must not be left without an end
            _log_error()
            what = f"the hosts could not be run: {error}; the job is kept in {self._folder.path}"
            verdict = Verdict(Kind.PLATFORM, what)
            self._attempt_ended(verdict)
            return verdict

    def _run_attempts(self) -> Verdict | None:
        while True:
            self._hold.check()
            number = self._attempt.number
            found = self._attempt.run(self._begun)
            verdict = found.masked() if found is not None else None
            self._attempt_ended(verdict)
            debug("%s: attempt %d ended: %s", self._plan.job_name, number, verdict.kind if verdict else "well")
            if verdict is not None and verdict.kind is Kind.PREEMPTED and self._surroundings.is_taken():
                self._is_interrupted = True  # a scheduler may tell the hosts alone, some time before it takes them
            if verdict is None or self._is_interrupted:
                return None
            now, began = time.time(), self._record.attempts[-1].began
            self._ends.append(AttemptEnd(verdict, now, *self._attempt.snapshots, now - began))
            self._tell_of_suspects()
            decision = rules_of(self._plan).decide(self._ends)
            why_not = self._attempt.too_few_machines if decision.again else decision.why_not
            if why_not or not decision.again:
                return verdict.not_tried_again(why_not) if why_not else verdict
            self._hold.check()
            self._attempt.tell(AttemptFailed(number, "; ".join((verdict.message, *self._attempt.left_here))))
            if decision.seconds:
                self._loop.run_until(lambda: self._is_to_end or self._attempt.is_in_vain(), decision.seconds)
            if not self._is_to_end and (why_not := self._attempt.too_few_machines):
                return verdict.not_tried_again(why_not)
            if not self._is_to_end:
                self._attempt = self._following()
            if self._is_to_end:  # it may have waited for the end of the hosts
                return None

    def _following(self) -> Attempt:
        """The next attempt: on the same hosts where they stand by, else on others in their place."""
        number, allocation = self._attempt.number, self._attempt.allocation
        if allocation.stand_by:
            allocation.set_outputs_aside(number)
            return self._new_attempt(number + 1, allocation)
        allocation.end()
        allocation.wait_until_gone()
        following = self._new_attempt(number + 1)  # or it fails, and what this one left stays where it is
        self._set_hosts_aside(number)
        return following

    def _new_attempt(self, number: int, allocation: Allocation | None = None) -> Attempt:
        of_job = (self._plan, self._folder, number, self._loop, self._children)
        on = allocation or Allocation(*of_job, self._factory)
        return Attempt(*of_job, on, self._record.output, self._hold.identity)

    def _set_hosts_aside(self, attempt: int) -> None:
        """So that the next attempt finds nothing of this one; `logs.open_logs` counts on its being one step."""
        make_folder(self._folder.attempt(attempt))
        self._folder.hosts.rename(self._folder.left(attempt))

    def _tell_of_suspects(self) -> None:
        """Of those that the attempt which has ended has made so."""
        from ...suspects import suspects  # most jobs have one attempt

        attempts = self._record.attempts
        known = {suspect.host for suspect in suspects(attempts[:-1])}
        for suspect in suspects(attempts):
            if suspect.host not in known:
                self._attempt.tell(suspect.event)

    def _begun(self) -> None:
        debug("%s: attempt %d has begun", self._plan.job_name, self._attempt.number)
        self._note(attempts=(*self._record.attempts, AttemptRecord(self._attempt.number, time.time())))
        if self._record.attempt == 1:
            self._limit_time()

    def _attempt_ended(self, verdict: Verdict | None) -> None:
        """Known from now on; it is written with what comes next, another attempt or the end of the job."""
        if self._record.attempts and self._record.attempts[-1].ended is None:
            self._record = self._record.with_attempt(ended=time.time(), verdict=verdict)

    def _note(self, **changes: Any) -> None:  # noqa: ANN401 - fields of Record
        self._record = replace(self._record, **changes)
        self._hold.check()
        write_record(self._record, self._folder, self._hold.fileno())

    def _limit_time(self) -> None:
        """From the beginning of the first attempt on: what waits for machines does not run."""
        over = self._record.attempts[0].began + self._plan.max_run
        reason = f"MaxRuntimeExceeded: it ran for max_run={self._plan.max_run:g} seconds"
        self._loop.after(max(0.0, over - time.time()), lambda: self._stop(reason))

    def _stop(self, reason: str) -> None:
        if self._stop_reason is not None or self._has_ended:
            return
        self._stop_reason = reason
        debug("%s: stopping: %s", self._plan.job_name, reason)
        self._attempt.stop()  # before anything that waits for the disk
        with contextlib.suppress(OSError):  # a full disk keeps no job from being stopped
            self._note(status="Stopping", reason=reason)

    # The scheduler.

    @property
    def _is_to_end(self) -> bool:
        return self._stop_reason is not None or self._is_interrupted

    def _interrupt(self) -> None:
        if self._is_to_end or self._has_ended:
            return
        self._is_interrupted = True
        debug("%s: interrupted", self._plan.job_name)
        self._surroundings.interrupt()
        self._attempt.stop()

    def _leave(self, interruption: Interruption) -> None:
        """Leave the job to the supervisor that is started next."""
        self.comes_again = True
        verdict = Verdict(Kind.PREEMPTED, interruption.reason)
        if self._record.attempts:
            self._record = self._record.with_attempt(ended=time.time(), verdict=verdict)
        self._note()
        self._attempt.allocation.wait_until_gone()

    def _take_over(self) -> None:
        """Go on with a job that an earlier supervisor has left, or was killed in."""
        left = self._record.attempt
        lost = self._surroundings.loss(self._plan.hosts[0].name) if self._record.attempts[-1].ended is None else None
        self._attempt_ended(lost or Verdict(Kind.PREEMPTED, f"attempt {left} ended with its supervisor"))
        if self._folder.hosts.exists() and not self._folder.left(left).exists():
            self._set_hosts_aside(left)

    # The end.

    def _result(self, verdict: Verdict | None, interruption: Interruption | None) -> tuple[Status, Verdict | None]:
        if self._stop_reason is not None:
            return "Stopped", None
        if interruption is not None:
            self._stop_reason = interruption.reason if interruption.verdict is None else None
            return ("Stopped" if interruption.verdict is None else "Failed"), interruption.verdict
        return ("Completed", None) if verdict is None else ("Failed", verdict)

    def _finish(self, status: Status, verdict: Verdict | None) -> None:
        self._has_ended = True  # what is left is to keep what there is
        self._hold.check()
        try:
            made, failed, said = self._keep_outputs(status)
        except Exception as error:  # whatever it is, as above
            _log_error()
            kept = f"what the script left is still in {self._folder.hosts}"
            failed = f"the job's outputs could not be written: {error}; {kept}"
            made, said = {}, []
        if failed:
            status = "Failed"
            verdict = _with_detail(verdict, failed) if verdict else Verdict(Kind.OUTPUTS, failed)
        reasons = [reason for reason in (self._stop_reason, self._attempt.unpublished, *said) if reason]
        self._hold.check()  # again, for that may have taken long
        shutil.rmtree(self._folder.channels, ignore_errors=True)  # it is where it came from
        reserve.release(str(self._folder.reserve))
        try:
            self._note(status=status, verdict=verdict, ended=time.time(), reason="; ".join(reasons), **made)
        finally:
            self._attempt.allocation.wait_until_gone()

    def _keep_outputs(self, status: Status) -> outputs.KeptOutputs:
        not_sent = (self._attempt.not_uploadable, self._attempt.not_uploaded)
        return outputs.keep(self._plan, self._folder, self._record.output, status != "Failed", not_sent, self._upload)

    def _upload(self, uri: str, files: Mapping[str, Path]) -> str:
        from ..agents.uploads import upload  # a job that keeps its outputs here need not load it

        return upload(self._loop, self._children, uri, files, self._hold.identity)


def _first_record(folder: JobFolder) -> Record:
    """What the client has written before it handed over the plan. Raises NotOurs where it was removed since."""
    record = read_record(folder)
    if record is None:
        raise NotOurs(f"the job's record {folder.record} was removed before it began")
    return record


def _log_error() -> None:
    """Into the supervisor's log; a full disk does not take it, which must not keep the end of a job from being told."""
    with contextlib.suppress(OSError):
        traceback.print_exc()


def _with_detail(verdict: Verdict, failed: str) -> Verdict:
    return replace(verdict, detail=f"{verdict.detail}\n\n{failed}")
