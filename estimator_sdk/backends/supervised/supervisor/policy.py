"""Whether an attempt that failed is followed by another, and when: pure functions of how all attempts ended so far."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from estimator_container.contract import names as contract
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from ....plan.plan import Plan
from ....spec.restart_policy import LONGEST_BACKOFF, RestartPolicy

NEVER_STARTED = (126, 127)
"""What a shell exits with for a command that it cannot run ("Exit Status" in the manual of bash)."""
SAME_ENDS = 3  # attempts in a row that end alike, or get nowhere, are enough
# Without the folders, which have other names on each host.
_PLACE = re.compile(r'^ *File "(?:.*/)?(.+)", line (\d+)', re.MULTILINE)


class AttemptEnd(NamedTuple):
    """How one attempt failed."""

    verdict: Verdict
    at: float
    """Seconds since 1970."""
    began_from: str | None = None
    """A checksum of the snapshot that it began from; None for a job without checkpoints."""
    newest: str | None = None
    """The one that another attempt would begin from."""
    seconds: float = 0.0
    """How long it took, from its beginning."""

    @property
    def got_nowhere(self) -> bool:
        """Whether it has left no checkpoint with other bytes than it began from, in a job that keeps any."""
        return self.newest is not None and self.newest == self.began_from

    @property
    def place(self) -> tuple[object, ...]:
        """Where and how the script failed, so that the same failure of another rank is the same."""
        found = _PLACE.findall(self.verdict.detail)
        return (self.verdict.kind, self.verdict.exit_code, self.verdict.signal, found[-1] if found else None)


class Decision(NamedTuple):
    """What follows."""

    again: bool
    seconds: float = 0.0
    """How long the next attempt waits."""
    why_not: str = ""
    """Where another attempt was allowed, and would be a waste: the end of a sentence about the failure."""


@dataclass(frozen=True)
class Rules:
    """What a job allows."""

    max_retry_attempts: int = 0
    """How often what the platform failed is tried again: "RetryStrategy" in the API reference of SageMaker."""
    policy: RestartPolicy | None = None

    @property
    def allow_any(self) -> bool:
        """Whether there can be a second attempt at all."""
        return self.max_retry_attempts > 0 or self.policy is not None

    @property
    def at_most(self) -> int:
        """How many attempts may follow the first; more do where old ones no longer count."""
        return self.max_retry_attempts + (self.policy.max if self.policy is not None else 0)

    def decide(self, ends: Sequence[AttemptEnd]) -> Decision:
        """What follows the last of the attempts, all of which have failed."""
        last = ends[-1]
        if last.verdict.kind is Kind.PREEMPTED:
            return Decision(self.allow_any)
        ends = [end for end in ends if end.verdict.kind is not Kind.PREEMPTED]  # which says nothing of the script
        if not self._allow(ends):
            return Decision(False)
        if last.verdict.exit_code == contract.EXIT_NO_RETRY:
            return Decision(False, why_not=f"exit code {contract.EXIT_NO_RETRY} rules out another attempt")
        if last.verdict.exit_code in NEVER_STARTED:
            return Decision(False, why_not="a script that could not be started is not tried again")
        with_time = _with_time_for_a_checkpoint(ends)[-SAME_ENDS:]
        if len(with_time) == SAME_ENDS and all(end.got_nowhere for end in with_time):
            return Decision(False, why_not=f"{SAME_ENDS} attempts in a row have left no newer checkpoint")
        if _is_crash_loop(ends[-SAME_ENDS:]):
            return Decision(False, why_not=f"{SAME_ENDS} attempts in a row have ended at the same place")
        return Decision(True, self._backoff(ends))

    def _allow(self, ends: Sequence[AttemptEnd]) -> bool:
        last, policy = ends[-1], self.policy
        of_platform = sum(end.verdict.may_pass for end in ends)
        if last.verdict.may_pass and of_platform <= self.max_retry_attempts:
            return True
        if policy is None or last.verdict.kind not in policy.on:
            return False
        since = last.at - policy.within if policy.within is not None else 0.0
        return sum(end.verdict.kind in policy.on and end.at >= since for end in ends) <= policy.max

    def _backoff(self, ends: Sequence[AttemptEnd]) -> float:
        if self.policy is None or not self.policy.backoff:
            return 0.0
        vain = next((count for count, end in enumerate(reversed(ends)) if not _is_vain(end)), len(ends))
        return min(LONGEST_BACKOFF, self.policy.backoff * 2.0 ** min(max(0, vain - 1), 32))


def rules_of(plan: Plan) -> Rules:
    """Those of a job."""
    return Rules(plan.max_retry_attempts, plan.restart_policy)


def variables_of_attempt(plan: Plan, number: int) -> dict[str, str]:
    """What a host is told of the attempt that it begins with; nothing in a job of one attempt."""
    rules = rules_of(plan)
    if not rules.allow_any:
        return {}
    return {contract.RESTARTS: str(number - 1), contract.MAX_RESTARTS: str(rules.at_most)}


def _with_time_for_a_checkpoint(ends: Sequence[AttemptEnd]) -> list[AttemptEnd]:
    """Without those that the platform failed sooner than any attempt had left a newer checkpoint.

    They say nothing of the script, which may do well as soon as it is let. Where no attempt has left one, nobody knows
    how long that takes, and all count.
    """
    needed = min((end.seconds for end in ends if not _is_vain(end)), default=0.0)
    return [end for end in ends if not (end.verdict.may_pass and end.seconds < needed)]


def _is_vain(end: AttemptEnd) -> bool:
    """Whether nothing of it is left: a job that keeps no checkpoints begins from nothing each time."""
    return end.newest is None or end.got_nowhere


def _is_crash_loop(ends: Sequence[AttemptEnd]) -> bool:
    """Whether a script fails at the same place again and again, and no checkpoint is newer for it."""
    if len(ends) < SAME_ENDS or any(end.verdict.may_pass for end in ends):
        return False
    return all(_is_vain(end) for end in ends) and len({end.place for end in ends}) == 1
