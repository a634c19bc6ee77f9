"""Logs that agree, folded into one: those whose lines are the same but for their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from estimator_container.logs.frames import SPAWNED

from ..values.naming import some
from .log import Log

MOST_GROUPS = 16
"""Groups that are told apart; the logs of all others are one more."""
_RUNS, _HOSTS = 8, 3
"""What a title names one by one."""


@dataclass(frozen=True)
class Group:
    """Logs that agree; or, in the last group, all the logs for which there is no group left."""

    logs: tuple[Log, ...]
    agree: bool = True

    @property
    def title(self) -> str:
        """Whose they are, such as `ranks 0–3, 5`."""
        if len(self.logs) == 1:
            return self.logs[0].name
        ranks = [log.rank for log in self.logs if log.rank is not None and log.rank < SPAWNED]
        named = [f"{'ranks' if len(ranks) > 1 else 'rank'} {some(_runs(ranks), _RUNS)}"] if ranks else []
        others = [log.name for log in self.logs if log.rank not in ranks]
        return ", ".join([*named, *([some(others, _HOSTS)] if others else [])])

    @property
    def lines(self) -> str:
        """How many lines each has, such as `118 to 121 lines`."""
        low, high = min(log.count for log in self.logs), max(log.count for log in self.logs)
        count = f"{low}" if low == high else f"{low} to {high}"
        return f"{count} line{'' if high == 1 else 's'}{' each' if low == high and len(self.logs) > 1 else ''}"

    @property
    def behind(self) -> Log | None:
        """The log that is shortest by far: less than half of the longest, and the only one."""
        shortest, *rest = sorted(self.logs, key=lambda log: log.count)
        far = [log for log in rest if log.count > 2 * shortest.count]
        return shortest if rest and len(far) == len(rest) else None


def grouped(logs: Sequence[Log]) -> list[Group]:
    """The logs in groups, ordered by the first log of each."""
    found: dict[object, list[Log]] = {}
    for log in logs:
        found.setdefault((log.source, log.kinds()), []).append(log)
    groups = [Group(tuple(each)) for each in found.values()]
    if len(groups) <= MOST_GROUPS:
        return groups
    # The largest are kept: many that differ from all others say less one by one.
    kept = sorted(groups, key=lambda group: len(group.logs), reverse=True)[: MOST_GROUPS - 1]
    rest = tuple(log for group in groups if group not in kept for log in group.logs)
    return [*(group for group in groups if group in kept), Group(rest, agree=False)]


def _runs(ranks: Sequence[int]) -> list[str]:
    """Ranks in their order as runs: `0–3`, `5`."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1][1:] = [rank]
        else:
            runs.append([rank])
    return ["–".join(map(str, run)) for run in runs]
