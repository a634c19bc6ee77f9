"""The process that owns a local job: starts its hosts, watches them, and records what becomes of it.

It is detached from the client that started it, so the job outlives that one. If the supervisor itself
is killed, its hosts see the end of a pipe that it holds, and end with it.
"""

from __future__ import annotations

import contextlib
import os
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
from estimator_container.contract import EXIT_OK, Layout
from estimator_container.loop import Loop
from estimator_container.verdict import Verdict

from ..home import JobFolder
from ..plan import Plan
from . import outputs, traces
from .hosts import Hosts, HostsFactory
from .record import Process, Status, read

# When one host fails, the toolkits of the others end by themselves; an image without ours may not.
NEIGHBOUR_SECONDS = 1.0
NEIGHBOUR_GRACE = 0.5
# The toolkit ends its ranks when the grace period is over, and then itself.
TOOLKIT_SECONDS = 5.0


class Supervisor:
    """One attempt at a job, from its plan to its final record."""

    def __init__(self, plan: Plan, folder: JobFolder, factory: HostsFactory) -> None:
        self._plan = plan
        self._folder = folder
        self._loop = Loop()
        self._children = Children(self._loop)
        self._attempt = 1
        self._exit_codes: dict[str, int] = {}
        self._first_failure: str | None = None
        self._found: Verdict | None = None
        self._stop_reason: str | None = None
        self._record = replace(read(folder), supervisor=Process.of(os.getpid()))
        self._hosts: Hosts = factory(plan, folder, self._attempt, self._loop, self._children, self._host_ended)

    def run(self) -> None:
        """Run the job to its end; always leaves a final record."""
        become_subreaper()
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.on_signal(signum, lambda: self._stop("stopped by the user"))
        try:
            reserve.keep(str(self._folder.reserve))
            self._note()
            self._hosts.start()
            self._note(attempt=self._attempt)
            self._loop.after(self._plan.max_run, self._too_long)
            self._loop.run_until(lambda: len(self._exit_codes) == len(self._plan.hosts))
        except Exception as error:  # whatever it is, the job must not be left without an end
            traceback.print_exc()
            self._finish("Failed", Verdict("platform", f"the hosts could not be run: {error}"))
            return
        finally:
            self._hosts.close()
        self._finish(*self._result())

    def _note(self, **changes: Any) -> None:  # noqa: ANN401 - fields of Record
        self._record = replace(self._record, **changes)
        self._record.write(self._folder)

    # What happens.

    def _host_ended(self, host: str, code: int, found: Verdict | None = None) -> None:
        self._exit_codes[host] = code
        self._found = self._found or found
        if code != EXIT_OK and self._first_failure is None:
            self._first_failure = host
            self._loop.after(NEIGHBOUR_SECONDS, lambda: self._hosts.signal(signal.SIGTERM))
            self._loop.after(NEIGHBOUR_SECONDS + NEIGHBOUR_GRACE, lambda: self._hosts.signal(signal.SIGKILL))

    def _too_long(self) -> None:
        self._stop(f"MaxRuntimeExceeded: it ran for max_run={self._plan.max_run:g} seconds")

    def _stop(self, reason: str) -> None:
        if self._stop_reason is not None:
            return
        self._stop_reason = reason
        with contextlib.suppress(OSError):  # a full disk keeps no job from being stopped
            self._note(status="Stopping", reason=reason)
        self._hosts.signal(signal.SIGTERM)
        self._loop.after(self._plan.stop_timeout + TOOLKIT_SECONDS, lambda: self._hosts.signal(signal.SIGKILL))

    # The end.

    def _result(self) -> tuple[Status, Verdict | None]:
        if self._stop_reason is not None:
            return "Stopped", None
        if self._first_failure is None:
            return "Completed", None
        return "Failed", self._verdict(self._first_failure)

    def _verdict(self, failed: str) -> Verdict:
        """What the platform saw, then the first host's word, for it heard all, then that of the first that failed.

        Where there is no word, there are traces.
        """
        if self._found is not None:
            return self._found
        for host in (self._plan.hosts[0].name, failed):
            path = Path(self._layout(host).verdict)
            if path.exists():
                return Verdict.from_json(path.read_text(encoding="utf-8"))
        return traces.verdict(failed, self._exit_codes[failed], self._layout(failed))

    def _finish(self, status: Status, verdict: Verdict | None) -> None:
        changes: dict[str, Any] = {"status": status, "verdict": verdict, "ended": time.time()}
        try:
            changes.update(self._write_outputs(status))
        except OSError as error:
            kept = self._folder.attempt(self._attempt)
            message = f"the job's outputs could not be written: {error}; what the script left is still in {kept}"
            changes.update(status="Failed", verdict=verdict or Verdict("platform", message))
        reserve.release(str(self._folder.reserve))
        self._note(**changes)

    def _write_outputs(self, status: Status) -> dict[str, str]:
        """The archives that SageMaker makes: the model unless the job failed, the output data always."""
        target = Path(self._record.output.removeprefix("file://"))
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
        return Path(getattr(self._layout(host), attribute))

    def _layout(self, host: str) -> Layout:
        return Layout(str(self._folder.host(self._attempt, host)))


def main(argv: list[str], find_factory: Callable[[str], HostsFactory]) -> int:
    """Run the job in the folder `argv[0]`; the plan comes on standard input, so no file holds its secrets."""
    plan = Plan.from_json(sys.stdin.read())
    folder = JobFolder(Path(argv[0]))
    Supervisor(plan, folder, find_factory(plan.backend)).run()
    return 0
