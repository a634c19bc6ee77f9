"""Where a step's time goes, as shares of it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..timeline import Who
from .step_records import StepSample

Seen = Literal["input", "communication", "checkpoint", "idle"]
Kind = Literal["input", "communication", "checkpoint", "idle", "computing"]
SEEN: tuple[Seen, ...] = ("input", "communication", "checkpoint", "idle")
"""What is told, if it is known; what remains is computing."""
KINDS: tuple[Kind, ...] = (*SEEN, "computing")


@dataclass(frozen=True)
class RankShares:
    """One rank. Shares are from 0 to 1, and None is not known: it is a part of computing then."""

    host: str
    rank: int | None
    steps: int
    seconds: float
    """That all of these took."""
    input: float | None
    communication: float | None
    checkpoint: float | None
    idle: float | None

    @property
    def computing(self) -> float:
        """All that is nothing else."""
        return max(0.0, 1.0 - sum(each or 0.0 for each in (self.input, self.communication, self.checkpoint, self.idle)))

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return self.seconds / self.steps if self.steps else 0.0

    def share(self, kind: Kind) -> float | None:
        """That of one kind."""
        value: float | None = getattr(self, kind)
        return value

    def seconds_of(self, kind: Kind) -> float:
        """How much of a step that is."""
        return self.step * (self.share(kind) or 0.0)


def shares_of(who: Who, samples: Sequence[StepSample]) -> RankShares:
    """Those of a rank, of all that it has told; what a rank tells is counted from its first step on."""
    last = samples[-1]
    spent = [_share(value, last.seconds) for value in (last.input, last.communication, last.checkpoint, last.idle)]
    return RankShares(who[0], who[1], last.steps, last.seconds, *spent)


def mean(ranks: Iterable[RankShares], kind: Kind) -> float | None:
    """Over the ranks; None where it is not known of any."""
    known = [share for share in (rank.share(kind) for rank in ranks) if share is not None]
    return statistics.mean(known) if known else None


def parts(samples: Mapping[Who, Sequence[StepSample]], count: int) -> list[dict[Who, StepSample]]:
    """The steps that all ranks have made, cut into so many parts: what each rank did in each of them.

    Ranks make their steps together, so it is steps that are compared, and not times.
    """
    steps = min((each[-1].steps for each in samples.values()), default=0)
    ends = [round(steps * number / count) for number in range(count + 1)]
    at = {who: [_at(each, end) for end in ends] for who, each in samples.items()}
    return [{who: _between(each[number], each[number + 1]) for who, each in at.items()} for number in range(count)]


def _share(value: float | None, whole: float) -> float | None:
    return None if value is None or whole <= 0 else min(1.0, max(0.0, value / whole))


def _at(samples: Sequence[StepSample], steps: int) -> StepSample:
    """What had been spent after so many steps, between two samples in proportion."""
    before = StepSample(0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for sample in samples:
        if sample.steps >= steps:
            part = (steps - before.steps) / max(1, sample.steps - before.steps)
            return StepSample(
                steps,
                before.seconds + part * (sample.seconds - before.seconds),
                *(
                    None if later is None else (earlier or 0.0) + part * (later - (earlier or 0.0))
                    for earlier, later in zip(_spent(before), _spent(sample), strict=True)
                ),
            )
        before = sample
    return before


def _between(first: StepSample, last: StepSample) -> StepSample:
    return StepSample(
        last.steps - first.steps,
        last.seconds - first.seconds,
        *(
            None if later is None else later - (earlier or 0.0)
            for earlier, later in zip(_spent(first), _spent(last), strict=True)
        ),
    )


def _spent(sample: StepSample) -> tuple[float | None, ...]:
    return sample.input, sample.communication, sample.checkpoint, sample.idle
