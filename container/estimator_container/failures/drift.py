"""The first host's part of the drift guard: who differs from whom, and whether that ends the job."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..contract.events import RanksDiffer
from ..drift.weight_report import PRECISIONS, Sample, Standing, WeightReport
from ..worlds.world import World
from .kind import Kind
from .verdict import Verdict, names_of, odd_one

PENDING = 64  # reports on one training that some ranks have sent and others have not
TRAININGS = 256  # that are remembered: a script may have one after the other
SHOWN_RANKS, SHOWN_NUMBERS = 8, 4  # in the detail of a verdict
_HALF = 2.0**-11  # numbers of half a word are coarser than this

Place = tuple[int, int]
"""How often the count has begun anew, and the step."""


class Difference(NamedTuple):
    """A variable that is not the same on all ranks."""

    variable: str
    step: int
    groups: tuple[tuple[int, ...], ...]
    """The ranks that agree with each other, the largest group first."""
    numbers: dict[int, tuple[float, ...]]
    """Rank -> what it has sent of the variable."""


class Drift(NamedTuple):
    """Ranks that differed at two reports, one after the other."""

    difference: Difference
    """At the second of them."""
    since: int
    """The step of the first of them."""
    standing: Standing
    only_warns: bool

    @property
    def ends_the_job(self) -> bool:
        """Whether the job fails for it, or only a line of the log reports it."""
        return self.standing is not Standing.FREE and not self.only_warns

    @property
    def event(self) -> RanksDiffer:
        """What the job tells of it."""
        variable, step, groups, _ = self.difference
        return RanksDiffer(variable, step, self.since, groups, self.standing.value, self.ends_the_job)

    @property
    def text(self) -> str:
        """The same in a sentence."""
        return sentence(self.event)

    def verdict(self, world: World) -> Verdict:
        """What to say of a job that ends for it."""
        rank = odd_one(self.difference.groups)
        host = world.host_of(rank) if rank is not None else None
        return Verdict(Kind.RANKS_DIFFER, self.text, host, rank, detail=self._numbers())

    def _numbers(self) -> str:
        shown = sorted(self.difference.numbers.items())[:SHOWN_RANKS]
        lines = (f"  rank {rank}: {' '.join(f'{n:.9g}' for n in numbers[:SHOWN_NUMBERS])}" for rank, numbers in shown)
        return f"{self.difference.variable!r} after step {self.difference.step}, some of it:\n" + "\n".join(lines)


def sentence(event: RanksDiffer) -> str:
    """What differs, where and since when."""
    goes_on = "" if event.ends_the_job else "; the job goes on"
    what = f"since step {event.since} the weights {event.variable!r} differ, {_apart(event.groups)}"
    return f"{what}: {_WHY[Standing(event.standing)]}{goes_on}"


_WHY = {
    Standing.AVERAGED: "Horovod or DDP averages its gradients, so the first weights differed, or some steps are not "
    "averaged",
    Standing.ASKED: "Horovod is initialised, but none of its optimizers and tapes was seen to average gradients",
    Standing.FREE: "nothing in the script asks for equal weights",
}


class _Training:
    """What is known of one training of all ranks."""

    def __init__(self) -> None:
        self.pending: dict[Place, dict[int, WeightReport]] = {}
        self.differed: Difference | None = None
        """How the ranks differed in the last report that all of them have sent."""
        self.is_told = False


class Judge:
    """Compares what ranks send after the same step."""

    def __init__(self, size: int) -> None:
        """`size` is how many ranks there are."""
        self._size = size
        self._trainings: defaultdict[str, _Training] = defaultdict(_Training)

    def hear(self, report: WeightReport) -> Drift | None:
        """What the ranks' differing comes to with this report; each training is told of once."""
        training = self._trainings[report.training]
        reports = training.pending.setdefault((report.start, report.step), {})
        reports[report.rank] = report
        if len(reports) == (len(report.ranks) or self._size):
            return self._compare(training, reports, report)
        if len(training.pending) > PENDING:
            del training.pending[min(training.pending)]
        if len(self._trainings) > TRAININGS:
            del self._trainings[next(iter(self._trainings))]
        return None

    def _compare(self, training: _Training, reports: Mapping[int, WeightReport], last: WeightReport) -> Drift | None:
        place = (last.start, last.step)
        training.pending = {each: reports for each, reports in training.pending.items() if each > place}
        before, training.differed = training.differed, difference(reports)
        if before is None or training.differed is None or training.is_told:
            return None
        training.is_told = True
        standing = _common_standing(reports.values())
        return Drift(training.differed, before.step, standing, any(each.only_warns for each in reports.values()))


def difference(reports: Mapping[int, WeightReport]) -> Difference | None:
    """The variable that differs most between the reports of all ranks on one step; None if none does."""
    ranks = sorted(reports)
    step = reports[ranks[0]].step
    worst: tuple[float, Difference] | None = None
    for samples in zip(*(reports[rank].samples for rank in ranks)):
        allowed = _allowed(samples, step)
        groups = _groups(dict(zip(ranks, samples)), allowed)
        if len(groups) > 1:
            excess = _spread(samples) / allowed if allowed else math.inf
            if worst is None or excess > worst[0]:
                numbers = {rank: sample.values for rank, sample in zip(ranks, samples)}
                worst = excess, Difference(samples[0].name, step, groups, numbers)
    return worst[1] if worst else None


def _allowed(samples: Sequence[Sample], step: int) -> float:
    """How far numbers may be apart.

    Ranks that apply the same gradient have the same weights, bit for bit, on machines of one kind. On others each
    step may round differently, which adds up as a random walk does; ranks that train apart are soon much further apart.
    """
    precision = max(PRECISIONS[sample.dtype] for sample in samples)
    largest = max((abs(n) for sample in samples for n in sample.values if math.isfinite(n)), default=0.0)
    return largest * precision * (2.0 if precision > _HALF else 4.0 * (4.0 + math.sqrt(step)))


def _groups(samples: Mapping[int, Sample], allowed: float) -> tuple[tuple[int, ...], ...]:
    groups: list[list[int]] = []
    for rank, sample in samples.items():
        for group in groups:
            if _agree(samples[group[0]].values, sample.values, allowed):
                group.append(rank)
                break
        else:
            groups.append([rank])
    return tuple(tuple(group) for group in sorted(groups, key=len, reverse=True))


def _agree(one: Sequence[float], other: Sequence[float], allowed: float) -> bool:
    return all(a == b or abs(a - b) <= allowed or (a != a and b != b) for a, b in zip(one, other))


def _spread(samples: Sequence[Sample]) -> float:
    """The largest distance between two ranks' numbers; infinite where only one of them is a number."""
    found = 0.0
    for numbers in zip(*(sample.values for sample in samples)):
        apart = max(numbers) - min(numbers)
        found = max(found, math.inf if math.isnan(apart) else apart)
    return found


def _common_standing(reports: Iterable[WeightReport]) -> Standing:
    """What all ranks say; free where they do not say the same."""
    standings = {report.standing for report in reports}
    return standings.pop() if len(standings) == 1 else Standing.FREE


def _apart(groups: Sequence[Sequence[int]]) -> str:
    """
    >>> _apart(((0, 1, 2), (3,))), _apart(((0,), (1,)))
    ('rank 3 from ranks 0, 1 and 2', 'rank 0 from rank 1')
    >>> _apart(((0,), (1,), (2,))), _apart(((0, 2), (1,), (3,)))
    ('all ranks differ', 'ranks 0 and 2, rank 1 and rank 3 from each other')
    """
    if len(groups) == 2:
        one, other = groups if len(groups[0]) == len(groups[1]) else reversed(groups)
        return f"{names_of(one)} from {names_of(other)}"
    if all(len(group) == 1 for group in groups):
        return "all ranks differ"
    *names, last = (names_of(group) for group in groups)
    return f"{', '.join(names)} and {last} from each other"
