"""One attempt at a job: its channels, its hosts and its checkpoints, from the restore to the last snapshot."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract.names import EXIT_OK, Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from ....plan.plan import Plan
from ....values.home import JobFolder, make_folder
from ..agents.intermediate import Intermediate
from ..job_folder.hold import NotOurs
from . import traces
from .hosts import Hosts, HostsFactory, NotStarted

if TYPE_CHECKING:
    from ..agents.channels import Channels
    from ..agents.checkpoints import Checkpoints

# When one host fails, the toolkits of the others end by themselves; an image without ours may not.
NEIGHBOUR_SECONDS = 0.75
LOST_SECONDS = 0.25  # the same, where one of them cannot
NEIGHBOUR_GRACE = 0.25
# The toolkit ends its ranks when the grace period is over, and then itself.
TOOLKIT_SECONDS = 5.0
# What is left to publish when the script has ended well may be large; when the job is stopped, the grace period counts.
PUBLISH_SECONDS = 900.0
PUBLISH_AT_LEAST = 5.0


class Attempt:
    """Brings what the hosts of a plan need, starts them, watches them, and says why they failed."""

    def __init__(
        self,
        plan: Plan,
        folder: JobFolder,
        number: int,
        loop: Loop,
        children: Children,
        factory: HostsFactory,
        output: str,
    ) -> None:
        """`output` is the URI below which the job's outputs go."""
        self.number = number
        self.unpublished: str | None = None
        """What of the checkpoints did not reach their store, and why."""
        self.not_uploaded = ""
        """Why `output/intermediate` is not whole in its store, if it is not."""
        self.not_uploadable = ""
        """What of it no store can hold, in words."""
        self._plan = plan
        self._folder = folder
        self._loop = loop
        self._exit_codes: dict[str, int] = {}
        self._first_failure: str | None = None
        self._found: Verdict | None = None
        self._stopped_at: float | None = None
        self._hosts_are_over = False
        self._hosts: Hosts = factory(plan, folder, number, loop, children, self._host_ended)
        self._checkpoints: Checkpoints | None = None
        if plan.checkpoint_uri is not None:
            from ..agents.checkpoints import Checkpoints  # a job without them need not load what they need

            self._checkpoints = Checkpoints(plan, folder, loop, children)
        self._channels: Channels | None = None
        if not all(channel.is_in_place for channel in plan.channels):
            from ..agents.channels import Channels

            self._channels = Channels(plan, folder, loop, children, self._channel_failed)

        self._intermediate = Intermediate(plan, folder, output, loop, children)

    def run(self, begun: Callable[[], None]) -> Verdict | None:
        """Run to the end; `begun` is called once each host has a log that can be followed.

        Returns why it failed; None when it did not, or was stopped. Whatever is raised, nothing of the hosts is left.
        """
        try:
            self._make_logs()
            begun()
            self._intermediate.start()
            failed = self._prepare()
            if failed is not None:
                return failed
            if self._stopped_at is None:
                try:
                    self._hosts.start()
                except NotStarted as reason:
                    return reason.verdict
                self._loop.run_until(lambda: len(self._exit_codes) == len(self._plan.hosts))
        except NotOurs:
            self._abandon()
            raise
        finally:
            self._hosts.close()
            self._hosts_are_over = True
            if self._channels is not None:
                self._channels.end()  # not before the hosts: to them it would be the end of the data
            if self._checkpoints is not None:
                self.unpublished = self._checkpoints.finish(self._seconds_to_publish())
            self.not_uploaded, self.not_uploadable = self._intermediate.finish()
        if self._stopped_at is not None:
            return None
        return self._verdict(self._first_failure) if self._first_failure else self._found

    def wait_until_gone(self) -> None:
        """Wait until nothing of the hosts is left but their files."""
        self._hosts.wait_until_gone()

    def stop(self) -> None:
        """SIGTERM to every host now, SIGKILL when the grace period is over."""
        self._stopped_at = time.monotonic()
        if self._channels is not None:
            self._channels.stop()
        self._end_hosts()

    def layout(self, host: str) -> Layout:
        """The files of a host."""
        return Layout(str(self._folder.host(host)))

    def _make_logs(self) -> None:
        for host in self._plan.hosts:
            frames = Path(self.layout(host.name).frames)
            make_folder(frames.parent)
            frames.touch(0o600)

    def _prepare(self) -> Verdict | None:
        """Bring the data and the checkpoints. Returns why that cannot be."""
        if self._channels is not None:
            self._channels.start()
        failed = self._checkpoints.begin(lambda: self._stopped_at is not None) if self._checkpoints else None
        if failed is not None:
            return Verdict(Kind.CHECKPOINTS, f"the checkpoints could not be restored: {failed}")
        failed = self._channels.wait() if self._channels is not None else None
        return Verdict(Kind.CHANNELS, failed) if failed is not None else None

    def _abandon(self) -> None:
        """Nothing is kept from now on: what would be read, and written, is another job's."""
        if self._checkpoints is not None:
            self._checkpoints.abandon()
        if self._channels is not None:
            self._channels.abandon()
        self._intermediate.abandon()

    def _channel_failed(self, reason: str) -> None:
        """In the middle of the job: a script that waits for data gets no more, and no end either."""
        self._found = self._found or Verdict(Kind.CHANNELS, reason)
        self._end_hosts()

    def _end_hosts(self) -> None:
        self._signal(signal.SIGTERM)
        self._loop.after(self._plan.stop_timeout + TOOLKIT_SECONDS, lambda: self._signal(signal.SIGKILL))

    def _host_ended(self, host: str, code: int, found: Verdict | None = None) -> None:
        self._exit_codes[host] = code
        self._found = self._found or found
        if code != EXIT_OK and self._first_failure is None:
            self._first_failure = host
            seconds = LOST_SECONDS if self._verdict(host).kind is Kind.HOST_LOST else NEIGHBOUR_SECONDS
            self._loop.after(seconds, lambda: self._signal(signal.SIGTERM))
            self._loop.after(seconds + NEIGHBOUR_GRACE, lambda: self._signal(signal.SIGKILL))

    def _signal(self, signum: int) -> None:
        if not self._hosts_are_over:  # another attempt may have their names and folders
            self._hosts.signal(signum)

    def _seconds_to_publish(self) -> float:
        if self._stopped_at is None:
            return PUBLISH_SECONDS
        return max(PUBLISH_AT_LEAST, self._plan.stop_timeout - (time.monotonic() - self._stopped_at))

    def _verdict(self, failed: str) -> Verdict:
        """What the platform saw, then the first host's word, for it heard all, then that of the first that failed.

        Where there is no word, there are traces.
        """
        if self._found is not None:
            return self._found
        for host in (self._plan.hosts[0].name, failed):
            path = Path(self.layout(host).verdict)
            if path.exists():
                return Verdict.from_json(path.read_text(encoding="utf-8"))
        return traces.verdict(failed, self._exit_codes[failed], self.layout(failed))
