"""What follows from running a script several times, each time with something left out: a pure function of the rates."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .advice import percent
from .diagnosis import Diagnosis

LEAST_GAIN = 0.02
"""What is less, or cannot be told from none, is nothing to gain."""


class Way(str, Enum):
    """How the script is run."""

    REAL = "as it is"
    REPLAYED = "first batch replayed"
    NO_CHECKPOINTS = "no checkpoints"
    ONE_RANK = "one rank"


@dataclass(frozen=True)
class Gap:
    """How much of the rate with something left out is lost, from 0 to 1; `least` and `most` by the extreme rates."""

    share: float
    least: float
    most: float

    @property
    def is_there(self) -> bool:
        """Whether it is more than nothing, by all rates."""
        return self.least > 0 and self.share >= LEAST_GAIN

    def __str__(self) -> str:
        return f"{percent(self.share)} ({100 * max(0.0, self.least):.0f} to {100 * max(0.0, self.most):.0f})"


@dataclass(frozen=True)
class Comparison:
    """The rates of a script, in steps a second of each rank, and why the real one is what it is."""

    rates: Mapping[Way, Sequence[float]]
    """One for each round; of a way that was not tried there are none."""
    ranks: int
    real: Diagnosis
    """That of a run of the script as it is."""

    def gap(self, way: Way) -> Gap | None:
        """Between the script as it is and this way; None where it was not tried."""
        real, other = self.rates[Way.REAL], self.rates.get(way, ())
        if not real or not other:
            return None
        return Gap(
            1 - statistics.median(real) / statistics.median(other),
            1 - max(real) / min(other),
            1 - min(real) / max(other),
        )

    def lines(self) -> list[str]:
        """As a screen shows it: words first, then the rates."""
        said = [*self._words(), ""]
        width = max(len(way.value) for way in self.rates)
        for way, rates in self.rates.items():
            if rates:
                least_to_most = f"{min(rates):.4g} to {max(rates):.4g}, {len(rates)} run{'s' * (len(rates) > 1)}"
                said.append(f"{way.value:<{width}}  {statistics.median(rates):8.4g} steps/s  ({least_to_most})")
        return [*said, "", *str(self.real).splitlines()]

    def to_json(self) -> dict[str, Any]:
        """The same in numbers."""
        gaps = {way: self.gap(way) for way in Way if way is not Way.REAL}
        return {
            "ranks": self.ranks,
            "rates": {way.name.lower(): list(rates) for way, rates in self.rates.items()},
            "gaps": {way.name.lower(): vars(gap) for way, gap in gaps.items() if gap is not None},
            "real": self.real.to_json(),
        }

    def _words(self) -> Iterator[str]:
        replayed, saved, alone = map(self.gap, (Way.REPLAYED, Way.NO_CHECKPOINTS, Way.ONE_RANK))
        if replayed is not None and replayed.is_there:
            yield f"{replayed} of the rate with the first batch replayed is lost to input."
        elif replayed is not None:
            most = percent(max(LEAST_GAIN, replayed.most))
            yield f"Not input bound: with the first batch replayed there is nothing to gain above {most}."
        if saved is not None and saved.is_there:
            yield f"{saved} of the rate without checkpoints is lost to writing them."
        if alone is not None:
            efficiency = (
                f"{self.ranks} ranks, each makes {100 * (1 - alone.share):.0f} % of the steps that one makes alone"
            )
            yield f"Scaling: of {efficiency}."
