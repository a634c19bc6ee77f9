"""Hurt real jobs at random moments, and count how often the typed error is right and how long it takes.

    python -m tests.chaos.injections --count 100 --backend process|docker [--seed S] [--first N] [--fault NAME]

Each round starts a small job of a random shape, does one random fault to it, and waits for the end. The error must name
the kind of the failure, its host and its rank, and nothing of the job may be left on the machine. A round is done
again by its seed and number: `--seed S --first N --count 1`. Ends with 1 when less than 95 % are correct, or anything
is wrong or left.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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


@contextlib.contextmanager
def own_folders() -> Iterator[Path]:
    """A home for jobs, and a place for temporary files, that nobody else uses; the names of sockets must stay short."""
    before = {name: os.environ.get(name) for name in ("ESTIMATOR_HOME", "TMPDIR")}
    with tempfile.TemporaryDirectory(prefix="chaos-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        home, scratch = Path(folder, "home"), Path(folder, "t")
        scratch.mkdir()
        os.environ.update(ESTIMATOR_HOME=str(home), TMPDIR=str(scratch))
        tempfile.tempdir = None  # it is remembered from the first use on
        try:
            yield home
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
            tempfile.tempdir = None


def image_for(backend: str) -> str | None:
    """The image that jobs of a backend run in, built if it is not there; None where none is needed."""
    if backend != "docker":
        return None
    from estimator_sdk.backends.docker import engine
    from estimator_sdk.backends.docker.images import build, catalogue

    build.ensure(engine.connect(), catalogue.MPI.name, sys.stderr)
    return catalogue.MPI.name


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.injections", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--backend", choices=["process", "docker"], default="process")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument("--fault", action="append", help="only this fault; may be given several times")
    parser.add_argument("--verbose", action="store_true", help="print every round, not only those that went wrong")
    parser.add_argument("--image", help="run containers of this image, made of one of ours, and build none")
    settings = parser.parse_args()
    known = possible(settings.backend)
    chosen = frozenset(settings.fault) if settings.fault else None
    if chosen is not None and not chosen <= known:
        parser.error(f"--fault: backend {settings.backend} can meet {', '.join(sorted(known))}")
    print(f"backend {settings.backend}, seed {settings.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(1))  # the job of the round is ended
    started = time.monotonic()
    image = settings.image or image_for(settings.backend)
    with own_folders():
        numbers = range(settings.first, settings.first + settings.count)
        tally = inject(settings.backend, numbers, settings.seed, image, chosen, settings.verbose)
    print(f"{tally}\n{time.monotonic() - started:.0f} s")
    return 0 if tally.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
