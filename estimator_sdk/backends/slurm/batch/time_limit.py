"""How long a job may run: a partition may have a limit of its own, and what asks for more waits for ever."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from ....errors import InvalidArgument
from ....plan.plan import Plan
from ....spec.limits import DEFAULT_MAX_RUN
from .partitions import Partitions

END_SECONDS = 600.0
"""Beyond `max_run`, for channels, outputs and the end of what is stopped: our own limit is to come before Slurm's."""


class TimeLimit(NamedTuple):
    """What a partition grants a job at most."""

    partition: str
    seconds: float

    @property
    def room(self) -> float:
        """Of it, what a job that asks for as much as it can leaves for its end."""
        return min(END_SECONDS, self.seconds / 10)


def of_partitions(partitions: Partitions) -> TimeLimit | None:
    """The limit of a partition, the most generous of several; None where there is no limit, or Slurm says none."""
    limits = [(seconds_in(each.get("MaxTime", "")), name) for name, each in partitions.items()]
    if not limits or any(seconds is None for seconds, _ in limits):
        return None
    seconds, partition = max((seconds or 0.0, name) for seconds, name in limits)
    return TimeLimit(partition, seconds)


def seconds_in(text: str) -> float | None:
    """A time as Slurm writes it; None for one without an end.

    >>> seconds_in("1-02:00:30"), seconds_in("00:20:00"), seconds_in("UNLIMITED")
    (93630.0, 1200.0, None)
    """
    days, _, clock = text.rpartition("-")
    try:
        hours, minutes, seconds = map(int, clock.split(":"))
        return float(((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds)
    except ValueError:
        return None


def within(plan: Plan, limit: TimeLimit | None) -> Plan:
    """The plan with a `max_run` that fits where nobody has chosen it. Raises InvalidArgument where it was chosen."""
    if limit is None or plan.max_run + plan.stop_timeout <= limit.seconds:
        return plan
    most = math.floor(limit.seconds - plan.stop_timeout - limit.room)
    allows = f"partition {limit.partition!r} allows a job {limit.seconds:g} s"
    if most < 1:
        what = f"stop_timeout is {plan.stop_timeout:g} s, but {allows}, which leaves no time to run"
        raise InvalidArgument("stop_timeout", f"{what}; lower it, or name another partition")
    if plan.max_run != DEFAULT_MAX_RUN:
        what = f"max_run is {plan.max_run:g} s, which with stop_timeout={plan.stop_timeout:g} is too long: {allows}"
        raise InvalidArgument("max_run", f"{what}; ask for at most {most}, or name another partition")
    return replace(plan, max_run=float(most))


def minutes(plan: Plan, limit: TimeLimit | None) -> int:
    """What Slurm is asked for."""
    seconds = plan.max_run + plan.stop_timeout + END_SECONDS
    return math.ceil(seconds / 60) if limit is None else min(math.ceil(seconds / 60), int(limit.seconds // 60))


def note(plan: Plan, limit: TimeLimit | None) -> list[str]:
    """What the script says of it, where that is why the job has less time than it is given elsewhere."""
    if limit is None or plan.max_run + plan.stop_timeout + limit.room < limit.seconds - 1:
        return []
    return [f"# max_run is {plan.max_run:g} s, because partition {limit.partition} allows a job {limit.seconds:g} s"]
