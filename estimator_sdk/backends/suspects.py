"""Which hosts of a job fail again and again: a pure function of how its attempts ended, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from estimator_container.contract.events import HostSuspected
from estimator_container.failures.kind import Kind

from .status import AttemptRecord

ENOUGH = 2  # failures
WITHIN = 600.0  # seconds
_OF_THE_HOST = (Kind.HOST_LOST, Kind.HOST_MISSING)
"""The kinds of failures that are a host's own, whatever the script does."""


class Suspect(NamedTuple):
    """A host that has failed so often in so short a time that its machine may be to blame."""

    host: str
    failures: int
    """The most that lie within `WITHIN` seconds."""

    @property
    def event(self) -> HostSuspected:
        """What the job tells of it."""
        return HostSuspected(self.host, self.failures, WITHIN)


def suspects(attempts: Sequence[AttemptRecord]) -> tuple[Suspect, ...]:
    """The suspect hosts after these attempts, in the order in which they failed first."""
    times: dict[str, list[float]] = {}
    for each in attempts:
        verdict = each.verdict
        if verdict is not None and verdict.kind in _OF_THE_HOST and verdict.host is not None and each.ended is not None:
            times.setdefault(verdict.host, []).append(each.ended)
    counted = (Suspect(host, _most_within(failed)) for host, failed in times.items())
    return tuple(each for each in counted if each.failures >= ENOUGH)


def _most_within(times: Sequence[float]) -> int:
    return max(sum(first <= each <= first + WITHIN for each in times) for first in times)
