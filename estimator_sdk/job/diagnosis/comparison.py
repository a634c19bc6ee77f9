"""What follows from running a script several times, each time with something different: a function of the rates."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from . import picture
from .advice import percent
from .diagnosis import Diagnosis
from .input_look import InputLook
from .trials import LEAST_GAIN, Trial
from .words import wrapped

LEAST_GAP = 0.02
"""What is less, or cannot be told from none, is nothing to gain."""


class Way(str, Enum):
    """How the script is run."""

    REAL = "as it is"
    REPLAYED = "first batch replayed"
    WARM = "warm cache"
    COLD = "cold cache"
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
        return self.least > 0 and self.share >= LEAST_GAP

    def __str__(self) -> str:
        return f"{percent(self.share)} ({100 * max(0.0, self.least):.0f} to {100 * max(0.0, self.most):.0f})"


@dataclass(frozen=True)
class RunRates:
    """Of several runs that were alike, in steps a second of each rank."""

    all: Sequence[float]

    @property
    def middle(self) -> float:
        """Their median."""
        return statistics.median(self.all)

    def gap_to(self, other: RunRates) -> Gap:
        """How much of the other rates is lost in these."""
        return Gap(
            1 - self.middle / other.middle, 1 - max(self.all) / min(other.all), 1 - min(self.all) / max(other.all)
        )

    def __str__(self) -> str:
        count = len(self.all)
        least_to_most = f"{min(self.all):.4g} to {max(self.all):.4g}, {count} run{'s' * (count > 1)}"
        return f"{self.middle:8.4g} steps/s  ({least_to_most})"


@dataclass(frozen=True)
class Tried:
    """A piece of advice that was tried: the rates without it and with it."""

    trial: Trial
    without: RunRates
    rates: RunRates
    waits: Sequence[float] = ()
    """What share of a step was waiting for input with it, in each run; empty where that is not known."""

    @property
    def gain(self) -> tuple[float, float, float]:
        """How many times as fast it was: the medians compared, and the least and the most by the extreme rates."""
        with_it, without = self.rates, self.without
        return (
            with_it.middle / without.middle,
            min(with_it.all) / max(without.all),
            max(with_it.all) / min(without.all),
        )

    @property
    def helps(self) -> bool:
        """Whether it was faster by all rates, and by enough."""
        gain, least, _ = self.gain
        return least > 1 and gain >= LEAST_GAIN

    def row(self) -> list[str]:
        """As the table has it."""
        gain, least, most = self.gain
        predicted = f"{'at most ' * self.trial.is_bound}{self.trial.predicted:.2f}x"
        words = f"helps: {self.trial.how}" if self.helps else "does not help"
        return [self.trial.what, predicted, f"{gain:.2f}x ({least:.2f} to {most:.2f})", words]

    def to_json(self) -> dict[str, Any]:
        """The same in numbers."""
        gain, least, most = self.gain
        return {
            **asdict(self.trial),
            "rates": list(self.rates.all),
            "verified": {"gain": gain, "least": least, "most": most},
            "input": statistics.median(self.waits) if self.waits else None,
            "helps": self.helps,
        }


@dataclass(frozen=True)
class Comparison:
    """The rates of a script, in steps a second of each rank, and why the real one is what it is."""

    rates: Mapping[Way, Sequence[float]]
    """One for each round; of a way that was not tried there are none."""
    ranks: int
    real: Diagnosis
    """That of a run of the script as it is."""
    look: InputLook | None = None
    """What its ranks were seen to do while they waited for input."""
    tried: Sequence[Tried] | None = None
    """The advice that was tried; None where none was to be."""

    def gap(self, way: Way) -> Gap | None:
        """Between the script as it is and this way; None where it was not tried."""
        return self._gap(Way.REAL, way)

    def lines(self) -> list[str]:
        """As a screen shows it: words first, then the rates."""
        said = [line for words in self._words() for line in wrapped(words)]
        width = max(len(way.value) for way in self.rates)
        rates = [f"{way.value:<{width}}  {RunRates(rates)}" for way, rates in self.rates.items() if rates]
        advice = [*self._advice(), ""] if self.tried is not None else []
        return [*said, "", *rates, "", *advice, *str(self.real).splitlines()]

    def to_json(self) -> dict[str, Any]:
        """The same in numbers."""
        gaps = {way: self.gap(way) for way in Way if way is not Way.REAL}
        cause = None if self.look is None else self.look.named(self.real.hosts)
        return {
            "ranks": self.ranks,
            "rates": {way.name.lower(): list(rates) for way, rates in self.rates.items()},
            "gaps": {way.name.lower(): vars(gap) for way, gap in gaps.items() if gap is not None},
            "input": None if self.look is None else {"cause": cause and cause.value, **asdict(self.look)},
            "tried": None if self.tried is None else [each.to_json() for each in self.tried],
            "real": self.real.to_json(),
        }

    def to_svg(self) -> str:
        """As a picture: a bar for each way in which the script was run."""
        taken = {way.value: RunRates(rates) for way, rates in self.rates.items() if rates}
        taken |= {each.trial.what: each.rates for each in self.tried or ()}
        shown = {name: (each.middle, min(each.all), max(each.all)) for name, each in taken.items()}
        return picture.of_rates("steps a second of each rank", shown)

    def best(self) -> Tried | None:
        """The advice that has helped most; None where none has."""
        helped = [each for each in self.tried or () if each.helps]
        return max(helped, key=lambda each: each.gain[0], default=None)

    def _gap(self, slower: Way, faster: Way) -> Gap | None:
        slow, fast = self.rates.get(slower, ()), self.rates.get(faster, ())
        return RunRates(slow).gap_to(RunRates(fast)) if slow and fast else None

    def _words(self) -> Iterator[str]:
        replayed, saved, alone = map(self.gap, (Way.REPLAYED, Way.NO_CHECKPOINTS, Way.ONE_RANK))
        if replayed is not None and replayed.is_there:
            yield f"{replayed} of the rate with the first batch replayed is lost to input."
            why = "" if self.look is None else self.look.sentence(self.real.hosts)
            if why:
                yield f"Why: {why}."
        elif replayed is not None:
            most = percent(max(LEAST_GAP, replayed.most))
            yield f"Not input bound: with the first batch replayed there is nothing to gain above {most}."
        if saved is not None and saved.is_there:
            yield f"{saved} of the rate without checkpoints is lost to writing them."
        yield from self._of_cache()
        if alone is not None:
            efficiency = (
                f"{self.ranks} ranks, each makes {100 * (1 - alone.share):.0f} % of the steps that one makes alone"
            )
            yield f"Scaling: of {efficiency}."

    def _of_cache(self) -> Iterator[str]:
        cold, warm = self._gap(Way.COLD, Way.WARM), self.gap(Way.WARM)
        if cold is not None and cold.is_there:
            yield f"{cold} of the rate with a warm cache is lost where the channels have to be read from disk."
        if warm is not None and warm.is_there:
            yield f"As it is, {warm} of that rate is lost: the files do not stay in the host's page cache."

    def _advice(self) -> Iterator[str]:
        """What was tried, with what was predicted and what came of it."""
        if not self.tried:
            yield "Nothing to try: no advice that the doctor can apply promises more than 2 %."
            return
        rows = [["tried", "predicted", "verified", ""], *(each.row() for each in self.tried)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        best, replayed = self.best(), self.rates.get(Way.REPLAYED)
        if best is not None and replayed:
            left = best.rates.gap_to(RunRates(replayed))
            what = str(left) if left.is_there else f"nothing above {percent(max(LEAST_GAP, left.most))}"
            waits = f", and {100 * statistics.median(best.waits):.1f} % of a step waits for input" if best.waits else ""
            yield f"With {best.trial}, {what} of the rate with the first batch replayed is lost{waits}."
