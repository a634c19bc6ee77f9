"""The process that owns a local job: starts its hosts, watches them, and records what becomes of it.

It is detached from the client that started it, so the job outlives that one. If the supervisor itself
is killed, its hosts see the end of a pipe that it holds, and end with it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from estimator_container import reserve
from estimator_container.children import Children, become_subreaper
from estimator_container.events import EventLog
from estimator_container.frames import FrameWriter
from estimator_container.loop import Loop
from estimator_container.verdict import Verdict

from ..home import JobFolder
from ..plan import Plan
from . import outputs, uploads
from .attempt import Attempt
from .hosts import HostsFactory
from .record import AttemptRecord, Process, Status
from .registry import read, write
from .retry import is_worth_another
from .stopping import STOPPED_BY

RESERVE = 1 << 18  # bytes; the database's log has an index of 32 KiB, and every change is there a page of 4 KiB or more


class Supervisor:
    """A job, from its plan to its final record, in one attempt or more."""

    def __init__(self, plan: Plan, folder: JobFolder, factory: HostsFactory) -> None:
        self._plan = plan
        self._folder = folder
        self._factory = factory
        self._loop = Loop()
        self._children = Children(self._loop)
        self._stop_reason: str | None = None
        self._has_ended = False
        self._record = replace(read(folder), supervisor=Process.of(os.getpid()))
        self._attempt = self._new_attempt(1)

    def run(self) -> None:
        """Run the job to its end; always leaves a final record."""
        become_subreaper()
        for signum in STOPPED_BY:
            self._loop.on_signal(signum, lambda: self._stop("stopped by the user"))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPED_BY)
        try:
            reserve.keep(str(self._folder.reserve), RESERVE)
            self._loop.after(self._plan.max_run, self._too_long)
            verdict = self._run_attempts()
        except Exception as error:  # whatever it is, the job must not be left without an end
            traceback.print_exc()
            verdict = Verdict("platform", f"the hosts could not be run: {error}")
            self._attempt_ended(verdict)
        self._finish(*self._result(verdict))

    def _run_attempts(self) -> Verdict | None:
        while True:
            number = self._attempt.number
            verdict = self._attempt.run(self._begun)
            self._attempt_ended(verdict)
            if verdict is None or not is_worth_another(verdict, number, self._plan.max_retry_attempts):
                return verdict
            self._tell_of_another(verdict)
            self._attempt.wait_until_gone()
            self._attempt = self._new_attempt(number + 1)

    def _new_attempt(self, number: int) -> Attempt:
        output = self._record.output
        return Attempt(self._plan, self._folder, number, self._loop, self._children, self._factory, output)

    def _tell_of_another(self, verdict: Verdict) -> None:
        frames = FrameWriter(self._attempt.layout(self._plan.hosts[0].name).frames)
        left = self._plan.max_retry_attempts - self._attempt.number
        EventLog(frames).emit("attempt_failed", attempt=self._attempt.number, reason=verdict.message, left=left)
        frames.close()

    def _begun(self) -> None:
        self._note(attempts=(*self._record.attempts, AttemptRecord(self._attempt.number, time.time())))

    def _attempt_ended(self, verdict: Verdict | None) -> None:
        """Known from now on; it is written with what comes next, another attempt or the end of the job."""
        if self._record.attempts:
            self._record = self._record.with_attempt(ended=time.time(), verdict=verdict)

    def _note(self, **changes: Any) -> None:  # noqa: ANN401 - fields of Record
        self._record = replace(self._record, **changes)
        write(self._record, self._folder)

    def _too_long(self) -> None:
        self._stop(f"MaxRuntimeExceeded: it ran for max_run={self._plan.max_run:g} seconds")

    def _stop(self, reason: str) -> None:
        if self._stop_reason is not None or self._has_ended:
            return
        self._stop_reason = reason
        self._attempt.stop()  # before anything that waits for the disk
        with contextlib.suppress(OSError):  # a full disk keeps no job from being stopped
            self._note(status="Stopping", reason=reason)

    # The end.

    def _result(self, verdict: Verdict | None) -> tuple[Status, Verdict | None]:
        if self._stop_reason is not None:
            return "Stopped", None
        return ("Completed", None) if verdict is None else ("Failed", verdict)

    def _finish(self, status: Status, verdict: Verdict | None) -> None:
        self._has_ended = True  # what is left is to keep what there is
        try:
            made, failed = self._keep_outputs(status)
        except OSError as error:
            kept = self._folder.attempt(self._attempt.number)
            failed = f"the job's outputs could not be written: {error}; what the script left is still in {kept}"
            made = {}
        if failed:
            status = "Failed"
            verdict = _with_detail(verdict, failed) if verdict else Verdict("outputs", failed)
        reasons = [reason for reason in (self._stop_reason, self._attempt.unpublished) if reason]
        shutil.rmtree(self._folder.channels, ignore_errors=True)  # it is where it came from
        reserve.release(str(self._folder.reserve))
        try:
            self._note(status=status, verdict=verdict, ended=time.time(), reason="; ".join(reasons), **made)
        finally:
            self._attempt.wait_until_gone()

    def _keep_outputs(self, status: Status) -> tuple[dict[str, str], str]:
        """Make the archives and bring them to where they belong. Returns what to record, and what failed, in words."""
        uri = self._record.output
        local = Path(uri.removeprefix("file://")) if uri.startswith("file://") else self._folder.output
        if local.is_relative_to(self._folder.path):
            os.umask(0o077)  # as all that is kept in the home; elsewhere the user's own umask says who may read them
        made = self._write_archives(status, local)
        reason = self._attempt.not_uploaded
        if not uri.startswith("file://") and not reason:
            files = {str(path.relative_to(local)): path for path in local.rglob("*") if path.is_file()}
            reason = uploads.upload(self._loop, self._children, uri, files)
            if not reason:
                shutil.rmtree(local)  # each is whole in the store
        if not reason:
            return made, ""
        kept = f"the archives are in {local}, the folders of the hosts in {self._folder.attempt(self._attempt.number)}"
        what = f"the outputs of {self._plan.job_name} are not all in {uri}: {reason}"
        return {}, f"{what}; nothing is lost: {kept}"

    def _write_archives(self, status: Status, target: Path) -> dict[str, str]:
        """The archives that SageMaker makes: the model unless the job failed, the output data always."""
        data = [self._path(host.name, "output_data") for host in self._plan.hosts]
        makers = self._plan.model_hosts
        if len(makers) < len(self._plan.hosts):
            data = [self._path(host, "output_data") for host in makers]
            self._keep_apart(target)
        outputs.archive(data, target / "output.tar.gz")
        if status == "Failed":
            return {}
        clashes = outputs.archive([self._path(host, "model") for host in makers], target / "model.tar.gz")
        for name in clashes:
            print(
                f"model/{name} was written by several hosts; the first host's is in the archive",
                file=sys.stderr,
            )
        return {"model_data": f"{self._record.output}/model.tar.gz"}

    def _keep_apart(self, target: Path) -> None:
        for host in self._plan.hosts:
            if host.name not in self._plan.model_hosts:
                for attribute, name in (("model", "model.tar.gz"), ("output_data", "output.tar.gz")):
                    folder = self._path(host.name, attribute)
                    if outputs.has_files(folder):
                        outputs.archive([folder], target / "hosts" / host.name / name)

    def _path(self, host: str, attribute: str) -> Path:
        return Path(getattr(self._attempt.layout(host), attribute))


def _with_detail(verdict: Verdict, failed: str) -> Verdict:
    return replace(verdict, detail=f"{verdict.detail}\n\n{failed}")


def main(argv: list[str], find_factory: Callable[[str], HostsFactory]) -> int:
    """Run the job in the folder `argv[0]`; the plan comes on standard input, so no file holds its secrets."""
    folder = JobFolder(Path(argv[0]))
    try:
        plan = Plan.from_json(sys.stdin.read())
    except ValueError:
        print("its client ended before it had handed over the plan", file=sys.stderr)
        if not folder.record.exists():
            shutil.rmtree(folder.path, ignore_errors=True)  # nothing of a job that never was, not even its name
        return 1
    supervisor = Supervisor(plan, folder, find_factory(plan.backend))
    gc.freeze()  # what there is now, stays
    gc.enable()
    supervisor.run()
    return 0
