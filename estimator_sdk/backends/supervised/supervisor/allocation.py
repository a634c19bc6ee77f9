"""The hosts of a job and the channels that they read: for one attempt or, as long as all of them stand, for several."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from estimator_container.contract.names import EXIT_STOPPED, Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict, of_host_that_never_came, of_silent_host
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from ....plan.plan import Plan
from ....values.home import JobFolder, make_folder
from .hosts import Hosts, HostsFactory, NotStarted
from .hosts_line import FIRST_WORD_SECONDS, SILENT_SECONDS, HostsLine
from .policy import rules_of
from .traces import Failure

if TYPE_CHECKING:
    from ..agents.channels import Channels

# When one host fails, the toolkits of the others end by themselves; an image without ours may not.
NEIGHBOUR_SECONDS = 0.75
LOST_SECONDS = 0.25  # the same, where one of them cannot
NEIGHBOUR_GRACE = 0.25
# That the others have to say what becomes of the job, where it may go on with another host. To end what is left of an
# attempt may take them `restart.CLEAR_SECONDS`, and one that stands still is missed before.
WORD_SECONDS = SILENT_SECONDS + 5.0
ASKED_SECONDS = 0.25  # between two looks whether what one has asked is told
# The toolkit ends its ranks when the grace period is over, and then itself.
TOOLKIT_SECONDS = 5.0
# What the ranks of one attempt have written, and the next must not find.
WRITTEN = ("output", "model")


class Allocation:
    """Starts the hosts of a plan, hears how they do, and ends them."""

    def __init__(
        self, plan: Plan, folder: JobFolder, number: int, loop: Loop, children: Children, factory: HostsFactory
    ) -> None:
        """`number` is that of the first attempt on these hosts."""
        self.stand_by = False
        """Whether all hosts wait to be told what follows an attempt that failed."""
        self._plan = plan
        self._folder = folder
        self._loop = loop
        self._failure = Failure(self._first, self._layout)
        self._lost: tuple[str, ...] = ()
        """The hosts that would have to be made anew for another attempt."""
        self._replaced: tuple[str, ...] | None = None
        """Those that are; None before that is settled."""
        self._first_host_at = ""
        self._exit_codes: dict[str, int] = {}
        self._kills = False
        """Whether this process has killed what was left of them."""
        self._are_over = False
        self._are_told_to_end = False
        self._lines: dict[str, HostsLine] = {}
        """To each host, where there may be another attempt."""
        self._has_first_asked = False
        self._without_first: set[str] = set()
        """The hosts that wait for another first one."""
        self.hosts: Hosts = factory(plan, folder, number, loop, children, self._host_ended)
        self.has_started = False
        """Whether its hosts have been, so that an attempt finds what the one before has left."""
        self._channels: Channels | None = None
        if plan.local_scratch is None and not all(channel.is_in_place for channel in plan.channels):
            from ..agents.channels import Channels

            self._channels = Channels(plan, folder, loop, children, self._channel_failed)

    def wait_for_machines(self) -> None:
        """Wait until the job may use them. Raises NotStarted."""
        if not self.has_started:
            self.hosts.wait_for_machines()

    def fetch_channels(self) -> None:
        """Begin to fetch what is not there yet, and return at once. Raises OSError."""
        if self._channels is not None and not self.has_started:
            self._channels.start()

    def wait_for_channels(self, stopped: Callable[[], bool]) -> str | None:
        """Wait until all channels are there, or `stopped` is true. Returns why they cannot be, if they cannot."""
        return self._channels.wait(stopped) if self._channels is not None and not self.has_started else None

    def run(self, attempt: int) -> None:
        """Have the hosts run an attempt, and wait until they have ended or stand by. Raises OSError or NotStarted."""
        if self.has_started and self._lines:
            replaced = self._replaced or ()
            kept = [host.name for host in self._plan.hosts if host.name not in replaced]
            told_first = kept[:1] if self._first in kept else kept  # the first host before all others, which join it
            for host in told_first:
                self._lines[host].prepare_again()
            if not self.stand_by:  # any more
                gone = next((host for host in self._exit_codes if host not in self._lost), None)
                what = f"{gone or 'a host'} ended while it stood by for this attempt"
                raise NotStarted(Verdict(Kind.HOST_LOST, what, gone))
            self.stand_by, self._failure = False, Failure(self._first, self._layout)
            self._has_first_asked, self._lost = False, ()
            self._without_first.clear()
            self._replaced = None
            self._begin_again(replaced, told_first, attempt)
        else:
            self.has_started = True
            if self._may_stand_by:
                self._lines = {host.name: self._line_to(host.name) for host in self._plan.hosts}
            self.hosts.start()
        self._loop.run_until(lambda: self._have_ended or self.stand_by)

    def stop(self, grace: float) -> None:
        """SIGTERM to every host now, SIGKILL when the grace period is over."""
        self._signal(signal.SIGTERM)
        self._loop.after(grace + TOOLKIT_SECONDS, lambda: self._signal(signal.SIGKILL))

    def end(self) -> None:
        """End the hosts that still run, once; nobody writes to their files any more when this returns."""
        if self._are_over:
            return
        if self.stand_by:
            for line in self._lines.values():
                line.end()
            self._loop.run_until(lambda: self._have_ended, TOOLKIT_SECONDS)
        self.hosts.close()
        self._are_over = True
        for line in self._lines.values():
            line.close()
        if self._channels is not None:
            self._channels.end()  # not before the hosts: to them it would be the end of the data

    def abandon(self) -> None:
        """Touch nothing of the channels, now and later."""
        if self._channels is not None:
            self._channels.abandon()

    def wait_until_gone(self) -> None:
        """Wait until nothing of the hosts is left but their files."""
        self.hosts.wait_until_gone()

    def end_lost(self) -> None:
        """End what is left of the hosts that the others have lost: it may still write."""
        for lost in self._lost:
            self.hosts.end(lost)

    def set_outputs_aside(self, attempt: int) -> None:
        """Put what the ranks of an attempt have written where `logs.open_logs` looks for it: one step for each host.

        Of a host that is lost, that is all it had.
        """
        self.end_lost()
        self._replaced = self._lost
        for host in self._plan.hosts:
            base, left = self._folder.host(host.name), self._folder.left(attempt) / host.name
            if host.name in self._replaced:
                make_folder(left.parent)
                base.rename(left)
                continue
            make_folder(left)
            for name in WRITTEN:
                with contextlib.suppress(FileNotFoundError):  # a script may have removed it
                    (base / name).rename(left / name)

    @property
    def keeps_first_host(self) -> bool:
        """Whether the next attempt finds the first host's files as this one has left them."""
        return self.has_started and self._first not in (self._replaced or ())

    @property
    def verdict(self) -> Verdict | None:
        """Why the attempt failed."""
        return self._failure.verdict

    @property
    def _first(self) -> str:
        return self._plan.hosts[0].name

    @property
    def _have_ended(self) -> bool:
        return len(self._exit_codes) == len(self._plan.hosts)

    @property
    def _may_stand_by(self) -> bool:
        """A pipe cannot be read from its beginning again."""
        return rules_of(self._plan).allow_any and not any(channel.is_piped for channel in self._plan.channels)

    def _layout(self, host: str) -> Layout:
        return Layout(str(self._folder.host(host)))

    def _line_to(self, host: str) -> HostsLine:
        told = self._attempt_failed if host == self._first else partial(self._first_host_lost, host)
        return self.hosts.line_to(host, told, partial(self._host_silent, host))

    def _begin_again(self, replaced: tuple[str, ...], told: Sequence[str], attempt: int) -> None:
        if self._first in told:
            self._lines[self._first].begin_again(attempt - 1, answered=self._first_host_at)
        for host in replaced:
            self._exit_codes.pop(host, None)
            self._lines[host].close()
            self._lines[host] = self._line_to(host)
            self.hosts.start_again(host, attempt, self._first_host_at)
        if self._first in replaced:
            for host in told:
                self._lines[host].begin_again(attempt - 1, self._first_host_at)

    def _attempt_failed(self, found: Verdict, first_host_at: str, lost: tuple[str, ...]) -> None:
        self._failure.see(found)
        if self._first not in self._exit_codes:  # what it said last may be heard after its end
            self._has_first_asked = True
            self._stand_by_without(lost, first_host_at)

    def _first_host_lost(self, host: str, found: Verdict, address: str, lost: tuple[str, ...]) -> None:
        """Another host says so, and waits for one in its place."""
        self._without_first.add(host)
        if self._first not in self._exit_codes:
            self._failure.said_by_others = self._failure.said_by_others or found
        self._see_who_waits()

    def _host_silent(self, host: str) -> None:
        """No other host has told so, and may be unable to: it counts as lost, and is ended as what it is."""
        if host not in self._exit_codes:
            if self._lines[host].has_come:
                found = of_silent_host(host, "its supervisor", SILENT_SECONDS)
            else:
                found = of_host_that_never_came(host, FIRST_WORD_SECONDS)
            self._failure.see(found)
            self.hosts.end(host)

    def _see_who_waits(self) -> None:
        """Once all others that are there wait for another first host, it can be made anew.

        While the first host is there and has asked, its word counts: it has lost those that miss it.
        """
        waiting, ended = self._without_first, self._exit_codes.keys()
        has_first_asked = self._has_first_asked and self._first not in ended
        others = {host.name for host in self._plan.hosts} - {self._first}
        if waiting and not has_first_asked and others <= waiting | ended:
            lost = (self._first, *(host.name for host in self._plan.hosts if host.name in others - waiting))
            self._failure.wait_for_another_first(lost)
            self._stand_by_without(lost, self.hosts.first_host_at)

    def _stand_by_without(self, lost: tuple[str, ...], first_host_at: str) -> None:
        self._first_host_at, self._lost = first_host_at, lost
        are_more = self._replaced not in (None, lost)  # lost than the next attempt reckons with
        self.stand_by = not are_more and not self._are_told_to_end

    def _channel_failed(self, reason: str) -> None:
        """In the middle of the job: a script that waits for data gets no more, and no end either."""
        self._failure.see(Verdict(Kind.CHANNELS, reason))
        self.stop(self._plan.stop_timeout)

    def _host_ended(self, host: str, code: int, found: Verdict | None = None) -> None:
        self._exit_codes[host] = code
        if code == EXIT_STOPPED and not self._are_told_to_end:
            what = f"{host} was told to stop by a SIGTERM that did not come from its job"
            found = found or Verdict(Kind.PREEMPTED, what, host)
        failure = self._failure
        failure.see(found)
        is_first_failure = failure.host_ended(host, code, code < 0 and not self._kills)
        self._without_first.discard(host)
        if host not in self._lost:
            self.stand_by = False
            self._see_who_waits()
        if is_first_failure:
            failed = failure.verdict
            seconds = LOST_SECONDS if failed is not None and failed.kind is Kind.HOST_LOST else NEIGHBOUR_SECONDS
            has_come = host in self._lines and self._lines[host].has_come  # or no other host can miss it
            if has_come and any(line.is_up for name, line in self._lines.items() if name != host):
                seconds = WORD_SECONDS
            self._loop.after(seconds, lambda: self._end_neighbours(failure))

    def _end_neighbours(self, failure: Failure) -> None:
        """End the other hosts, unless they stand by for another in the place of the one that failed, or have one.

        That is seen later where one of them has asked what follows.
        """
        if self.stand_by or self._are_over or failure is not self._failure:
            return
        if any(line.has_asked for line in self._lines.values()):
            self._loop.after(ASKED_SECONDS, lambda: self._end_neighbours(failure))
        else:
            failure.others_are_told_to_end()
            self._signal(signal.SIGTERM)
            self._loop.after(NEIGHBOUR_GRACE, lambda: self._signal(signal.SIGKILL))

    def _signal(self, signum: int) -> None:
        if not self._are_over:  # another attempt may have their names and folders
            self._are_told_to_end = True
            self._kills = self._kills or signum == signal.SIGKILL
            self.hosts.signal(signum)
