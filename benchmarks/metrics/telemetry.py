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
from ..harness import FEW, Case, Extent, Metric, Panel, Target, Way
from ..turns import Together
from . import training

OFF = {"ESTIMATOR_TELEMETRY": "off"}
WITH, WITHOUT = "fit(), measured", "fit(), not measured"
ALONE, WAKES = "the program that measures", "a process that only wakes up"
TRAINING = Panel(
    "training of the digits beside what measures it",
    "ranks",
    "samples/s",
    (Target(WITH, WITHOUT, 0.995),),
    higher_is_better=True,
)
CPU = Panel("CPU of what measures", "ranks on the host", "%", (Target(ALONE, None, 1.0, 0.2),))
SECONDS = 30
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


def cases(extent: Extent) -> Iterator[Case]:
    epochs = 20 if extent.quick else 40
    with jobs.own_home():
        works = {
            WITHOUT: partial(training.ours, 1, epochs, environment=OFF),
            WITH: partial(training.ours, 1, epochs),
        }
        together = Together(works, lambda lines, clock: [training.rate(epochs, lines, clock)])
        ways = together.ways({WITHOUT: "floor", WITH: "ours"}, at_most=FEW)
        yield Case((TRAINING,), training.RANKS, ways)
        for ranks in extent.pick((1, 4, 16), (2,)):
            alone = Way(ALONE, "ours", partial(share_of_a_cpu, ranks), at_most=FEW)
            yield Case((CPU,), ranks, (Way(WAKES, "floor", of_a_bare_process, at_most=FEW), alone))


METRIC = Metric(
    "S20",
    "Measuring a host and its ranks",
    "The digits example of S12 on one host, with and without the program that measures the host; both are under way at "
    "once and take turns of half a second. And the CPU that this program takes beside ranks that wait, by what it "
    "keeps of itself; the floor is a process that wakes up as often and does nothing.",
    cases,
)
