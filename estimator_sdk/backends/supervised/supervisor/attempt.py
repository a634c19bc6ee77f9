"""One attempt at a job: its checkpoints and outputs, from the restore to the last snapshot, and what its hosts run."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract.agent_events import CheckpointFailed
from estimator_container.contract.names import Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.logs.events import EventLog
from estimator_container.logs.frames import FrameWriter
from estimator_container.runtime.children import Children
from estimator_container.runtime.folder_hold import HeldFolder
from estimator_container.runtime.loop import Loop

from ....plan.plan import Plan
from ....values.home import JobFolder, make_folder
from ..agents.intermediate import Intermediate
from ..job_folder.hold import NotOurs
from .allocation import Allocation
from .hosts import NotStarted, OnPool

if TYPE_CHECKING:
    from estimator_container.contract.event_decoding import QuietEvent

    from ..agents.checkpoints import Checkpoints

# What is left to publish when the script has ended well may be large; when the job is stopped, the grace period counts.
PUBLISH_SECONDS = 900.0
PUBLISH_AT_LEAST = 5.0
AWAY_SECONDS, AWAY_REST_SECONDS = 900.0, 5.0
"""How long another attempt waits for a store of checkpoints that is away, and rests before it tries it again."""


class Attempt:
    """Brings what the hosts need, has them run, and says why they failed."""

    def __init__(
        self,
        plan: Plan,
        folder: JobFolder,
        number: int,
        loop: Loop,
        children: Children,
        allocation: Allocation,
        output: str,
        held: HeldFolder,
    ) -> None:
        """`output` is the URI below which the job's outputs go, `held` the job's folder as its supervisor holds it."""
        self.number = number
        self.allocation = allocation
        self.unpublished: str | None = None
        """What of the checkpoints did not reach their store, and why."""
        self.not_uploaded = ""
        """Why `output/intermediate` is not whole in its store, if it is not."""
        self.not_uploadable = ""
        """What of it no store can hold, in words."""
        self._plan = plan
        self._folder = folder
        self._loop = loop
        self._stopped_at: float | None = None
        self._checkpoints: Checkpoints | None = None
        if plan.checkpoint_uri is not None:
            from ..agents.checkpoints import Checkpoints  # a job without them need not load what they need

            known, elsewhere = allocation.keeps_first_host, allocation.hosts
            start = elsewhere.starts_agent if isinstance(elsewhere, OnPool) else None
            self._new_checkpoints = partial(Checkpoints, plan, folder, loop, children, held, known, start)
            self._checkpoints = self._new_checkpoints()
        self._intermediate = Intermediate(plan, folder, output, loop, children, held)

    def run(self, begun: Callable[[], None]) -> Verdict | None:
        """Run to the end; `begun` is called once there are machines, and each host has a log that can be followed.

        Returns why it failed; None when it did not, or was stopped. Nothing of the hosts is left then, unless they
        stand by.
        """
        try:
            self._make_logs()
            found = self._wait_for_machines()
            begun()
            self._intermediate.start()
            found = found or self._prepare()
            if found is None and self._stopped_at is None:
                found = self._run_hosts()
        except NotOurs:
            self._abandon()
            raise
        finally:
            if self.allocation.stand_by:
                self.allocation.end_lost()
            else:
                self.allocation.end()
            if self._checkpoints is not None:
                self.unpublished = self._checkpoints.finish(self._seconds_to_publish())
            self.not_uploaded, self.not_uploadable = self._intermediate.finish()
        return None if self._stopped_at is not None else found

    def stop(self) -> None:
        """SIGTERM to every host now, SIGKILL when the grace period is over."""
        self._stopped_at = time.monotonic()
        self.allocation.stop(self._plan.stop_timeout)
        self._stopped_at = time.monotonic()  # the grace period begins when they can know of it
        if self._checkpoints is not None:
            self._checkpoints.hasten(self._seconds_to_publish())

    @property
    def left_here(self) -> list[str]:
        """What did not reach its store, in words."""
        return [said for said in (self.unpublished, self.not_uploaded, self.not_uploadable) if said]

    @property
    def too_few_machines(self) -> str:
        """Why no other attempt can have its hosts, in words; empty where one can."""
        hosts = self.allocation.hosts
        return hosts.too_few_machines if isinstance(hosts, OnPool) else ""

    def is_in_vain(self) -> bool:
        """Whether its hosts are not to run, or cannot any more."""
        return self._stopped_at is not None or bool(self.too_few_machines)

    @property
    def snapshots(self) -> tuple[str | None, str | None]:
        """A checksum of what it began from, and of what another would; None in a job without checkpoints."""
        if self._checkpoints is None:
            return None, None
        return self._checkpoints.began_from, self._checkpoints.newest

    def layout(self, host: str) -> Layout:
        """The files of a host."""
        return Layout(str(self._folder.host(host)))

    def tell(self, event: QuietEvent) -> None:
        """Put an event into the log of the first host."""
        frames = FrameWriter(self.layout(self._plan.hosts[0].name).frames)
        EventLog(frames).emit(event)
        frames.close()

    def _make_logs(self) -> None:
        for host in self._plan.hosts:
            frames = Path(self.layout(host.name).frames)
            make_folder(frames.parent)
            frames.touch(0o600)

    def _wait_for_machines(self) -> Verdict | None:
        try:
            self.allocation.wait_for_machines()
        except NotStarted as reason:
            return reason.verdict
        return None

    def _prepare(self) -> Verdict | None:
        """Bring the data and the checkpoints, or stop once that is in vain. Returns why it has failed, if it has."""
        if self.is_in_vain():
            return None
        self.allocation.fetch_channels()
        failed = self._restore(self._checkpoints) if self._checkpoints else None
        if failed is not None:
            return Verdict(Kind.CHECKPOINTS, f"the checkpoints could not be restored: {failed}")
        failed = self.allocation.wait_for_channels(self.is_in_vain)
        return Verdict(Kind.CHANNELS, failed) if failed is not None else None

    def _restore(self, checkpoints: Checkpoints) -> str | None:
        """Put the newest snapshot in place. Returns why that cannot be.

        In the first attempt that is soon known, for the store may not be there at all. Another one waits for it.
        """
        deadline, told = time.monotonic() + AWAY_SECONDS, ""
        while (failed := checkpoints.begin(self.is_in_vain)) and self.number > 1 and time.monotonic() < deadline:
            if failed != told:
                self.tell(CheckpointFailed(failed, 0))
            told = failed
            self._loop.run_until(self.is_in_vain, AWAY_REST_SECONDS)
            checkpoints.finish(0.0)
            self._checkpoints = checkpoints = self._new_checkpoints()
        return failed

    def _run_hosts(self) -> Verdict | None:
        if why := self.too_few_machines:
            return Verdict(Kind.HOST_LOST, f"a machine was lost before the hosts began: {why}")
        try:
            self.allocation.run(self.number)
        except NotStarted as reason:
            return reason.verdict
        return self.allocation.verdict

    def _abandon(self) -> None:
        """Nothing is kept from now on: what would be read, and written, is another job's."""
        if self._checkpoints is not None:
            self._checkpoints.abandon()
        self.allocation.abandon()
        self._intermediate.abandon()

    def _seconds_to_publish(self) -> float:
        if self._stopped_at is None:
            return PUBLISH_SECONDS
        return max(PUBLISH_AT_LEAST, self._plan.stop_timeout - (time.monotonic() - self._stopped_at))
