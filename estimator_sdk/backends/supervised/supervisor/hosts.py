"""What a local backend does for the supervisor: start the hosts of a plan, signal them, end them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from estimator_container.failures.verdict import Verdict
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from ....plan.plan import Plan
from ....values.home import JobFolder
from ..agents.agent_process import StartAgent
from .hosts_line import HostsLine, OnAttemptFailed


class NotStarted(Exception):
    """The hosts of an attempt could not be started, and it is known why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.message)
        self.verdict = verdict


class OnHostEnded(Protocol):
    """What is called when a host has ended."""

    def __call__(self, host: str, code: int, found: Verdict | None = None) -> None:
        """`code` is its exit code, or minus a signal's number; `found` what the platform knows and the host cannot."""


class Hosts(Protocol):
    """The running hosts of one attempt."""

    @property
    def first_host_at(self) -> str:
        """Where the others find a first host that was made anew, as `address:port`."""

    def line_to(self, host: str, on_failed: OnAttemptFailed, on_silence: Callable[[], None]) -> HostsLine:
        """A line to a host that is about to be started; see `HostsLine`. Raises OSError."""

    def wait_for_machines(self) -> None:
        """Wait until this job may use the machines that its hosts run on; `signal` ends that. Raises NotStarted."""

    def start(self) -> None:
        """Start all of them; returns as soon as the last one is on its way. Raises OSError or NotStarted."""

    def end(self, host: str) -> None:
        """End one host, whatever state it is in; nothing of it runs when this returns, and its end has been told."""

    def start_again(self, host: str, attempt: int, first_host_at: str) -> None:
        """Make a host anew that was ended, for the attempt of that number; others than the first join that there.

        Raises OSError or NotStarted.
        """

    def signal(self, signum: int) -> None:
        """Send a signal to the toolkit of every host that still runs."""

    def close(self) -> None:
        """End the hosts that still run, and begin to remove everything that this attempt had besides its files.

        Nobody writes to those any more when it returns.
        """

    def wait_until_gone(self) -> None:
        """Wait until all that is removed."""


@runtime_checkable
class OnPool(Protocol):
    """Hosts on the machines of a pool, which do not come back once they are lost."""

    @property
    def too_few_machines(self) -> str:
        """Why no other attempt can have its hosts, in words; empty where one can."""

    @property
    def starts_agent(self) -> StartAgent | None:
        """What starts the agent where the first host has its files; None where that is here."""


class HostsFactory(Protocol):
    """Makes the hosts of one attempt; each local backend has one."""

    def __call__(
        self,
        plan: Plan,
        folder: JobFolder,
        attempt: int,
        loop: Loop,
        children: Children,
        on_ended: OnHostEnded,
    ) -> Hosts: ...
