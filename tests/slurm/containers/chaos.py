"""Rounds of chaos on the cluster of containers: a job, one fault to a machine at a random moment, what became of it.

python -m tests.slurm.containers.chaos --count 20 [--seed S] [--first N]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from tests.chaos.faults import Truth, of_host
from tests.chaos.rounds import Grade, judge

from . import cluster
from .cluster import NODES, ContainerCluster
from .jobs import ClusterJob, assert_nothing_is_left, submit

DEADLINE = 90.0  # seconds from the fault to the end of the job: more is a hang
MOMENTS = 4.0  # seconds, up to which a fault comes after all ranks are up
LOOPS = """
import time
print("up", flush=True)
time.sleep(600)
"""


def kill_rank(made: ContainerCluster, node: str) -> None:
    """SIGKILL to one script on a node."""
    made.run("sh", "-c", "kill -KILL $(pgrep -u ada -f ranks.script_runner | tail -n 1)", machine=node)


FAULTS: dict[str, tuple[Callable[[ContainerCluster, str], None], tuple[str, ...]]] = {
    "kill-node": (ContainerCluster.kill, ("host_lost",)),
    "cut-node": (ContainerCluster.cut, ("host_lost",)),
    "freeze-node": (ContainerCluster.freeze, ("host_lost",)),
    "kill-rank": (kill_rank, ("signal",)),
}
"""What is done to a node, and the kinds of a right verdict."""


@dataclass(frozen=True)
class Strike:
    """What is done in a round; the same seed and number give the same."""

    number: int
    seed: int
    fault: str
    hosts: int
    processes: int | None
    target: int
    """Which host, from 1; never the first, with whose machine Slurm starts the job anew."""
    moment: float

    @classmethod
    def drawn(cls, number: int, seed: int) -> Strike:
        """The faults come in turn, each with a job and a moment at random."""
        chance = random.Random(f"{seed} {number}")
        hosts, processes = chance.choice([2, 3]), chance.choice([None, 1, 2])
        fault = list(FAULTS)[number % len(FAULTS)]
        return cls(number, seed, fault, hosts, processes, chance.randint(2, hosts), chance.uniform(0.0, MOMENTS))

    @property
    def truth(self) -> Truth:
        kinds = FAULTS[self.fault][1]
        host = f"algo-{self.target}"
        if self.fault != "kill-rank":
            return of_host(host, *kinds)
        own = range((self.target - 1) * (self.processes or 0), self.target * (self.processes or 0))
        return Truth(kinds, frozenset({host}), frozenset(own) if self.processes else frozenset({None}))


@dataclass(frozen=True)
class Ending:
    """What became of it."""

    strike: Strike
    grade: Grade
    said: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.strike}\n    {self.grade} after {self.seconds:.1f} s: {self.said}"


def play(made: ContainerCluster, strike: Strike) -> Ending:
    """One round, on nodes that are idle; raises AssertionError where the job leaves something."""
    mpi = {"mpi": {"enabled": True, "processes_per_host": strike.processes}}
    job = submit(made, LOOPS, strike.hosts, distribution=mpi if strike.processes else None)
    job.wait_for_line("up", times=strike.hosts * (strike.processes or 1))
    threading.Event().wait(strike.moment)
    node = job.nodes()[strike.target - 1]
    struck = time.time()
    FAULTS[strike.fault][0](made, node)
    ending = _graded(strike, job, struck)
    alive = [each for each in NODES if each != node or strike.fault == "kill-rank"]
    assert_nothing_is_left(job, *alive)
    if strike.fault != "kill-rank":
        made.replace(node)
    return ending


def _graded(strike: Strike, job: ClusterJob, struck: float) -> Ending:
    end = job.end(DEADLINE)
    if end["status"] == "InProgress":
        job.cluster.run("scancel", str(job.number))
        return Ending(strike, "hang", "the job goes on", DEADLINE)
    seconds = end["ended"] - struck
    if end["kind"] is None:
        return Ending(strike, "wrong", json.dumps(end), seconds)
    found = Verdict(Kind(end["kind"]), end["why"], end["host"], end["rank"])
    return Ending(strike, judge(strike.truth, found), end["why"].partition("\n")[0], seconds)


def inject(made: ContainerCluster, numbers: Iterable[int], seed: int) -> list[Ending]:
    """Play the rounds of these numbers, and print each."""
    endings = []
    for number in numbers:
        endings.append(play(made, Strike.drawn(number, seed)))
        print(endings[-1], flush=True)
    return endings


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--first", type=int, default=0)
    settings = parser.parse_args()
    with cluster.shared() as made:
        endings = inject(made, range(settings.first, settings.first + settings.count), settings.seed)
    correct = sum(each.grade == "correct" for each in endings)
    print(f"{correct} of {len(endings)} correct")
    return 0 if all(each.grade in ("correct", "vague") for each in endings) else 1


if __name__ == "__main__":
    sys.exit(main())
