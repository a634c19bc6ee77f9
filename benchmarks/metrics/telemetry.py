"""S20: what it costs that a host measures itself and its ranks."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

from estimator_sdk import Estimator

from .. import jobs
from ..harness import Case, Extent, Metric, Panel, Reading, Table, Target, Way
from ..turns import Clock, by_turns
from . import training

OFF = {"ESTIMATOR_TELEMETRY": "off"}
WITH, WITHOUT = "fit(), measured", "fit(), not measured"
ALONE, WAKES = "the program that measures", "a process that only wakes up"
TRAINING = Panel("training of the digits beside what measures it", "ranks", "samples/s", higher_is_better=True)
LOSS = Panel("what training loses to it", "ranks", "%", (Target(WITH, plus=0.5),))
CPU = Panel("CPU of what measures", "ranks on the host", "%", (Target(ALONE, None, 1.0, 0.2),))
SECONDS = 15
ROUNDS, LEAST_ROUNDS = 9, 3
"""Of training: a round's own figure spreads by a few times what is looked for."""
PATIENCE = 240.0
"""Seconds of training: there are as many rounds as have room in them."""
AT_REST = 2
"""Runs in which ranks only wait."""
CERTAIN = NormalDist().inv_cdf(0.975)
_pairs: list[float] = []
"""The logarithm of how many times as long an epoch took beside what measures, in both ways of one round."""
WAITS = f"import time\ntime.sleep({SECONDS})\n"
FLOOR = f"""
import time
began, spent = time.monotonic(), time.process_time()
while time.monotonic() - began < {SECONDS}:
    time.sleep(2 - time.time() % 2)
print(100 * (time.process_time() - spent) / (time.monotonic() - began))
"""


def share_of_a_cpu(ranks: int) -> float:
    """Per cent of one CPU that measuring took on a host with so many ranks, by what it keeps of itself."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "waits.py").write_text(WAITS)
        estimator = Estimator(
            entry_point="waits.py",
            source_dir=folder,
            backend="process",
            distribution={"mpi": {"enabled": True, "processes_per_host": ranks}},
            base_job_name="bench",
        )
        job = jobs.fit(estimator).job
    (series,) = job.machines(["telemetry.cpu.utilization"], resolution=2).series
    return 100 * statistics.mean(series.mean)


def of_a_bare_process() -> float:
    done = subprocess.run([sys.executable, "-I", "-S", "-c", FLOOR], capture_output=True, text=True, check=True)
    return float(done.stdout)


class Pairs:
    """Rounds in which both train by turns, the first one before and after the other.

    What is lost is told of each round by itself, and the report takes the median: the machine may change from one
    round to the next by more than is looked for.
    """

    def __init__(self, epochs: int) -> None:
        without = partial(training.ours, 1, epochs, environment=OFF)
        self._works = (without, partial(training.ours, 1, epochs))
        self._epochs = epochs
        self._round = 0
        self._left: dict[str, list[Reading]] = {WITHOUT: [], WITH: []}

    def rounds(self, most: int) -> int:
        """How many there is time for, after the first."""
        began = time.monotonic()
        self._take()
        return max(min(LEAST_ROUNDS, most), min(most, int(PATIENCE / (time.monotonic() - began))))

    def reading(self, name: str) -> Reading:
        """Samples a second, and of training that is measured what it loses in per cent; of a new round if need be."""
        if not self._left[name]:
            self._take()
        return self._left[name].pop()

    def _take(self) -> None:
        order = (0, 1) if self._round % 2 == 0 else (1, 0)
        self._round += 1
        done = by_turns([self._works[place] for place in order])
        without, measured = (done[order.index(place)] for place in (0, 1))
        rates = [training.rate(self._epochs, lines, clock) for lines, clock in (without, measured)]
        self._left[WITHOUT].append((rates[0], None))
        self._left[WITH].append((rates[1], 100 * (1 - rates[1] / rates[0])))
        times = zip(*(epochs_of(lines, clock) for lines, clock in (without, measured)), strict=True)
        _pairs.extend(math.log(beside / bare) for bare, beside in times)


def epochs_of(lines: training.Lines, clock: Clock) -> list[float]:
    """Seconds of each epoch but the first, which also compiles."""
    ends = [at for _, at in sorted(training.ends_of(lines).items())]
    return [clock.between(begin, end) for begin, end in pairwise(ends)]


def tables() -> list[Table]:
    if len(_pairs) < 2:
        return []
    mean, spread = statistics.mean(_pairs), CERTAIN * statistics.stdev(_pairs) / math.sqrt(len(_pairs))
    lost, least, most = (f"{100 * -math.expm1(-each):+.2f} %" for each in (mean, mean - spread, mean + spread))
    cells = (str(len(_pairs)), lost, f"{least} to {most}")
    print(f"  training loses {cells[1]} by {cells[0]} pairs of epochs, with 95 % certainty {cells[2]}", flush=True)
    words = "Each epoch beside the one that the other way trained at about the same time; of all rounds."
    return [Table("What training loses, by pairs of epochs", ("pairs", "mean", "95 % interval"), (cells,), words)]


def cases(extent: Extent) -> Iterator[Case]:
    _pairs.clear()
    with jobs.own_home():
        pairs = Pairs(20 if extent.quick else 40)
        rounds = pairs.rounds(extent.runs if extent.quick else ROUNDS)
        ways = (
            Way(WITHOUT, "floor", partial(pairs.reading, WITHOUT), at_most=rounds),
            Way(WITH, "ours", partial(pairs.reading, WITH), at_most=rounds),
        )
        yield Case((TRAINING, LOSS), training.RANKS, ways, rounds)
        for ranks in extent.pick((1, 4, 16), (2,)):
            alone = Way(ALONE, "ours", partial(share_of_a_cpu, ranks), at_most=AT_REST)
            yield Case((CPU,), ranks, (Way(WAKES, "floor", of_a_bare_process, at_most=AT_REST), alone))


METRIC = Metric(
    "S20",
    "Measuring a host and its ranks",
    "The digits example of S12 on one host, with and without the program that measures the host; both are under way at "
    "once and take turns of half a second, and what training loses is told by the two rates of each round. There are "
    "as many rounds as have room in four minutes. And the CPU "
    "that this program takes beside ranks that wait, by what it keeps of itself; the floor is a process that wakes up "
    "as often and does nothing.",
    cases,
    tables=tables,
)
