"""The supervisor's part in the claim of a job: the leases on all its machines, or none."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from estimator_container.runtime.loop import Loop

from .....plan.plan import Plan
from ...checks import machines_of_plan
from .. import words
from .leases import Ticket


class Terms(NamedTuple):
    """What a job needs of each machine."""

    job: str
    ticket: Ticket
    slots: int
    limits: dict[str, int | None]
    """Machine -> its slots; None is for it to count, 0 is without a limit."""

    def of(self, machine: str) -> str:
        """As the machine's keeper is told."""
        limit = self.limits.get(machine, 0)
        return json.dumps({"job": self.job, "ticket": self.ticket, "slots": self.slots, "limit": limit})


def terms_of(plan: Plan, machines: Sequence[str]) -> Terms:
    """Those of a plan on the machines that it names, which a supervisor calls so.

    A job that does not wait, and does not say how many slots a machine has, is held to nothing.
    """
    unknown = None if plan.decoded.reserved.queue else 0
    named = zip(machines, machines_of_plan(plan))
    limits = {machine: host.slots or unknown for machine, host in named}
    ticket = Ticket(time.time(), f"{plan.job_name}.{os.urandom(4).hex()}")
    return Terms(plan.job_name, ticket, plan.processes_per_host, limits)


class Claims:
    """How the claims on the machines stand.

    A job that waits holds no lease: so two that wait for the same machines do not wait for each other. The one whose
    ticket is earlier is before the other on every machine.
    """

    def __init__(self, loop: Loop, send: Callable[..., None], at: Callable[[str], str], terms: Terms) -> None:
        """`send` takes a machine and the fields of a message, `at` says how the user calls a machine."""
        self._loop = loop
        self._send = send
        self._at = at
        self._terms = terms
        self._states: dict[str, tuple[str, str]] = {}
        """Machine -> its state, one of those in `words`, and who is before this job there."""

    def hear(self, machine: str, state: str, before: str) -> None:
        """What a keeper says."""
        if machine in self._states:
            self._states[machine] = state, before

    def lost(self, machine: str) -> None:
        """Its keeper is gone, and the lease with it."""
        self._states.pop(machine, None)

    def hold(
        self, machines: Sequence[str], waits: bool, is_over: Callable[[], bool], on_full: Callable[[str], None]
    ) -> str:
        """Hold the leases on these machines; returns why that cannot be, or nothing.

        With `waits` it goes on until that can be, and `on_full` is told who is before this job whenever that changes.
        It returns early once `is_over` is true or a machine is lost.
        """
        for machine in machines:
            if machine not in self._states:
                self._claim(machine)
        told = ""
        while True:
            self._loop.run_until(lambda: is_over() or not self._are(machines, words.ASKED))
            if is_over() or not self._states.keys() >= {*machines} or not self._are(machines, words.FULL, words.FREE):
                return ""
            full = [machine for machine in machines if self._states[machine][0] == words.FULL]
            if not full:
                self._ask(words.TAKE, machines, words.FREE)
                continue
            self._ask(words.GIVE_BACK, machines, words.HELD)
            if not waits:
                return self._who_is_before(full)
            if (who := self._who_is_before(full)) != told:
                told = who
                on_full(who)
            self._wait_for_change(is_over)

    def take(self, machine: str) -> None:
        """Hold the lease on a machine that takes the place of another, whoever is before; nothing is waited for."""
        if machine not in self._states:
            self._terms.limits.pop(machine, None)
            self._claim(machine)
            self._ask(words.TAKE, [machine], words.ASKED)

    def _wait_for_change(self, is_over: Callable[[], bool]) -> None:
        seen = dict(self._states)
        self._loop.run_until(lambda: is_over() or self._states != seen)

    def _claim(self, machine: str) -> None:
        self._states[machine] = words.ASKED, ""
        self._send(machine, words.CLAIM, self._terms.of(machine))

    def _ask(self, what: str, machines: Sequence[str], state: str) -> None:
        """Of those in this state."""
        for machine in machines:
            if self._states[machine][0] == state:
                self._states[machine] = words.ASKED, ""
                self._send(machine, what)

    def _are(self, machines: Sequence[str], *states: str) -> bool:
        """Whether some are in one of these states."""
        return any(self._states[machine][0] in states for machine in machines if machine in self._states)

    def _who_is_before(self, machines: Sequence[str]) -> str:
        return "; ".join(f"{self._at(machine)}: {self._states[machine][1]}" for machine in machines)
