"""Hurt real jobs at random moments, and count how often the typed error is right and how long it takes.

    python -m tests.chaos.injections --count 100 --backend process|docker|… [--seed S] [--first N] [--fault NAME]

Each round starts a small job of a random shape, does one random fault to it, and waits for the end. The error must name
the kind of the failure, its host and its rank, and nothing of the job may be left on the machine. A round is done
again by its seed and number: `--seed S --first N --count 1`. Ends with 1 when less than 95 % are correct, or anything
is wrong or left.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from .playing import play_as_told
from .rounds import Outcome, drawn, play, possible

ENOUGH = 0.95  # of all rounds are to be correct


@dataclass
class Tally:
    """What became of all rounds."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def grades(self) -> Counter[str]:
        return Counter(each.grade for each in self.outcomes)

    @property
    def is_good(self) -> bool:
        correct = self.grades["correct"] / len(self.outcomes)
        bad = [each for each in self.outcomes if each.grade in ("wrong", "hang") or each.left]
        return correct >= ENOUGH and not bad

    def __str__(self) -> str:
        total, grades = len(self.outcomes), self.grades
        shares = ", ".join(f"{grades[name]} {name}" for name in ("correct", "vague", "wrong", "hang"))
        left = sum(bool(each.left) for each in self.outcomes)
        lines = [f"{total} injections: {shares} ({grades['correct'] / total:.0%} correct); {left} left something"]
        for fault in sorted({each.round.fault for each in self.outcomes}):
            lines.append(self._line(fault))
        return "\n".join(lines)

    def _line(self, fault: str) -> str:
        chosen = [each for each in self.outcomes if each.round.fault == fault]
        seconds = [each.seconds for each in chosen if each.seconds is not None]
        times = (
            f"median {statistics.median(seconds):.2f} s, max {max(seconds):.2f} s" if seconds else "no error to come"
        )
        correct = sum(each.grade == "correct" for each in chosen)
        return f"  {fault:16} {correct:3} of {len(chosen):3} correct  {times}"


def inject(
    backend: str,
    numbers: Sequence[int],
    seed: int,
    image: str | None,
    faults: frozenset[str] | None = None,
    verbose: bool = False,
) -> Tally:
    """Play the rounds of these numbers; without `faults` all that the backend can meet.

    Prints the rounds that are not good, or with `verbose` every one. Ctrl-C ends it with what there is.
    """
    chosen = possible(backend) if faults is None else faults & possible(backend)
    tally = Tally()
    with contextlib.suppress(KeyboardInterrupt):
        for number in numbers:
            outcome = play(drawn(number, seed, backend, chosen), image)
            tally.outcomes.append(outcome)
            if verbose or not outcome.is_good:
                print(f"{outcome}\n    job {outcome.job}", flush=True)
    return tally


def main() -> int:
    tally = play_as_told("injections", __doc__ or "", 100, possible, "meet", inject)
    return 0 if tally.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
