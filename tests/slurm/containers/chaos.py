"""Rounds of chaos on the cluster of containers: a job, one fault at a random moment, and what became of it.

    python -m tests.slurm.containers.chaos --count 100 [--seed S] [--first N] [--fault NAME]

The faults are those of `faults.py`: to nodes and ranks, by Slurm and its users, to the controller, the accounting, the
shared folder and the client. Ends with 1 when less than 95 % are correct, or anything is wrong or left.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.chaos.injections import ENOUGH
from tests.chaos.rounds import Grade

from . import cluster, faults
from .cluster import NODES, ContainerCluster
from .faults import FAULTS, Strike
from .jobs import ClusterJob, assert_nothing_is_left

MOMENTS = 4.0  # seconds, up to which a fault comes after what it needs is there


def drawn(number: int, seed: int, names: Sequence[str] = tuple(FAULTS)) -> Strike:
    """The faults come in turn, each with a job and a moment at random."""
    chance = random.Random(f"{seed} {number}")
    hosts, processes = chance.choice([2, 3]), chance.choice([None, 1, 2])
    target, moment = chance.randint(2, hosts), chance.uniform(0.0, MOMENTS)
    return Strike(number, seed, names[number % len(names)], hosts, processes, target, moment, chance.random())


@dataclass(frozen=True)
class Ending:
    """What became of it."""

    strike: Strike
    grade: Grade
    said: str
    seconds: float
    left: str
    """What of the job is still in the queue or on nodes; empty as it should be."""

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return self.grade in ("correct", "vague") and not self.left

    def __str__(self) -> str:
        left = f"\n    left: {self.left}" if self.left else ""
        return f"{self.strike}\n    {self.grade} after {self.seconds:.1f} s: {self.said}{left}"


def play(made: ContainerCluster, strike: Strike) -> Ending:
    """One round, on nodes that are idle."""
    fault, left = FAULTS[strike.fault], ""
    job = faults.start(made, strike)
    try:
        struck, node = faults.do(made, job, strike)
        grade, said, ended = _graded(strike, job)
    finally:
        fault.heal(made)
    try:
        assert_nothing_is_left(job, *(each for each in NODES if each != node))
    except AssertionError as error:
        left = str(error)
        made.run("scancel", "--user=ada")
    if node:
        made.replace(node)
    return Ending(strike, grade, said, (ended or struck) - struck, left)


def _graded(strike: Strike, job: ClusterJob) -> tuple[Grade, str, float | None]:
    fault = FAULTS[strike.fault]
    end = job.end(fault.seconds)
    if end["status"] == "InProgress":
        job.cluster.run("scancel", str(job.number))
        return "hang", f"the job goes on: {job.state()}", None
    said = json.dumps({name: end[name] for name in ("status", "reason", "kind", "host", "rank", "attempts")})
    return fault.judge(strike, job, end), f"{said} {end['why'][:300]}", end["ended"]


def inject(made: ContainerCluster, strikes: Iterable[Strike]) -> list[Ending]:
    """Play these rounds, and print each."""
    endings = []
    for strike in strikes:
        endings.append(play(made, strike))
        print(endings[-1], flush=True)
    return endings


def tally(endings: Sequence[Ending]) -> str:
    """How many of them were right, by their faults."""
    lines = [
        f"{len(endings)} injections: {_counts(endings)}; {sum(bool(each.left) for each in endings)} left something"
    ]
    for fault in FAULTS:
        own = [each for each in endings if each.strike.fault == fault]
        if own:
            lines.append(f"  {fault:27} {len(own):3}: {_counts(own)}, at most {max(e.seconds for e in own):.0f} s")
    return "\n".join(lines)


def _counts(endings: Sequence[Ending]) -> str:
    return ", ".join(f"{count} {grade}" for grade, count in Counter(each.grade for each in endings).most_common())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=len(FAULTS))
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="only this one; may be given again")
    settings = parser.parse_args()
    names = tuple(settings.fault or FAULTS)
    numbers = range(settings.first, settings.first + settings.count)
    with cluster.ENGINE.shared() as made:
        endings = inject(made, [drawn(number, settings.seed, names) for number in numbers])
    print(tally(endings))
    correct = sum(each.grade == "correct" for each in endings)
    return 0 if correct >= ENOUGH * len(endings) and all(each.is_good for each in endings) else 1


if __name__ == "__main__":
    sys.exit(main())
