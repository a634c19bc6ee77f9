"""S20: what it costs that a host measures itself and its ranks."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from estimator_sdk import Estimator

from .. import jobs
from ..harness import FEW, Case, Extent, Metric, Panel, Reading, Target, Way
from ..turns import by_turns
from . import training

OFF = {"ESTIMATOR_TELEMETRY": "off"}
WITH, WITHOUT = "fit(), measured", "fit(), not measured"
ALONE, WAKES = "the program that measures", "a process that only wakes up"
TRAINING = Panel("training of the digits beside what measures it", "ranks", "samples/s", higher_is_better=True)
LOSS = Panel("what training loses to it", "ranks", "%", (Target(WITH, plus=0.5),))
CPU = Panel("CPU of what measures", "ranks on the host", "%", (Target(ALONE, None, 1.0, 0.2),))
SECONDS = 30
ROUNDS = 9
"""Of training: a round's own figure spreads by a few times what is looked for."""
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

    def reading(self, name: str) -> Reading:
        """Samples a second, and of training that is measured what it loses in per cent; of a new round if need be."""
        if not self._left[name]:
            order = (0, 1) if self._round % 2 == 0 else (1, 0)
            self._round += 1
            done = by_turns([self._works[place] for place in order])
            rates = [training.rate(self._epochs, lines, clock) for lines, clock in done]
            without, measured = (rates[order.index(place)] for place in (0, 1))
            self._left[WITHOUT].append((without, None))
            self._left[WITH].append((measured, 100 * (1 - measured / without)))
        return self._left[name].pop()


def cases(extent: Extent) -> Iterator[Case]:
    with jobs.own_home():
        pairs = Pairs(20 if extent.quick else 40)
        rounds = extent.runs if extent.quick else ROUNDS
        ways = (
            Way(WITHOUT, "floor", partial(pairs.reading, WITHOUT), at_most=rounds),
            Way(WITH, "ours", partial(pairs.reading, WITH), at_most=rounds),
        )
        yield Case((TRAINING, LOSS), training.RANKS, ways, rounds)
        for ranks in extent.pick((1, 4, 16), (2,)):
            alone = Way(ALONE, "ours", partial(share_of_a_cpu, ranks), at_most=FEW)
            yield Case((CPU,), ranks, (Way(WAKES, "floor", of_a_bare_process, at_most=FEW), alone))


METRIC = Metric(
    "S20",
    "Measuring a host and its ranks",
    "The digits example of S12 on one host, with and without the program that measures the host; both are under way at "
    "once and take turns of half a second, and what training loses is told by the two rates of each round. And the CPU "
    "that this program takes beside ranks that wait, by what it keeps of itself; the floor is a process that wakes up "
    "as often and does nothing.",
    cases,
)
