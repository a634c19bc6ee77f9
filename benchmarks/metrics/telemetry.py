"""S20: what it costs that a host measures itself and its ranks."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import NormalDist

from estimator_sdk import Estimator, Job

from .. import jobs
from ..harness import Case, Extent, Metric, Panel, Reading, Table, Target, Way
from . import training

WITH, WITHOUT = "fit(), measured", "fit(), not measured"
ALONE, WAKES = "the program that measures", "a process that only wakes up"
TRAINING = Panel("training of the digits beside what measures it", "ranks", "samples/s", higher_is_better=True)
LOSS = Panel("what training loses to it", "ranks", "%", (Target(WITH, plus=0.5),))
CPU = Panel("CPU of what measures", "ranks on the host", "%", (Target(ALONE, None, 1.0, 0.2),))
SECONDS = 15
TURN = 6.0
"""Seconds for which what measures stands still, and then goes on: three times as long as from one look to the next."""
TRAINED = 300.0
ENDLESS = 1_000_000  # epochs; the run is stopped
AT_REST = 2
"""Runs in which ranks only wait."""
CERTAIN = NormalDist().inv_cdf(0.975)
_turns: list[float] = []
"""The logarithm of how many times as fast training was in a turn as in those around it, in which nothing measures."""
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


class OneRun:
    """One training of the digits, during which the program that measures stands still and goes on by turns.

    What is lost is told of each turn in which it goes on beside the two in which it stands still before and after: the
    machine changes from one minute to the next by more than is looked for.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._rates: dict[str, float] = {}
        """Samples a second."""

    def reading(self, name: str) -> Reading:
        """Samples a second, and of training that is measured what it loses in per cent."""
        if not self._rates:
            self._train()
        lost = None if name == WITHOUT else 100 * (1 - math.exp(statistics.mean(_turns)))
        return self._rates[name], lost

    def _train(self) -> None:
        job = training.digits(1, ENDLESS).fit(logs="none", wait=False)
        for line in job.logs(rank=0, stream="stdout", follow=True):
            if training.ends_of([(0.0, line.data.decode())]):
                break  # the first epoch also compiles
        turns = by_turns(measuring(job), self._seconds)
        job.stop()
        job.wait()
        lines = training.lines_of(job)
        images = training.images_of(lines)
        rates = [images * epochs_a_second(lines, *turn) for turn in turns]
        self._rates = {WITHOUT: statistics.mean(rates[::2]), WITH: statistics.mean(rates[1::2])}
        _turns.extend(
            math.log(rates[at] / statistics.mean((rates[at - 1], rates[at + 1]))) for at in range(1, len(rates), 2)
        )


def measuring(job: Job) -> int:
    """The process that measures a job's only host."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if any(word.endswith(b"measure.py") for word in words) and str(job.folder).encode() in b" ".join(words):
                return int(process.name)
    raise RuntimeError(f"nothing measures {job.name}")


def by_turns(pid: int, seconds: float) -> list[tuple[float, float]]:
    """The beginning and end of an odd number of turns; in the first and each other one a process stands still."""
    turns, end = [], time.monotonic() + seconds
    try:
        while not turns or len(turns) % 2 == 0 or time.monotonic() < end:
            os.kill(pid, signal.SIGCONT if len(turns) % 2 else signal.SIGSTOP)
            began = time.time()
            time.sleep(TURN)
            turns.append((began, time.time()))
    finally:
        os.kill(pid, signal.SIGCONT)
    return turns


def epochs_a_second(lines: training.Lines, begin: float, end: float) -> float:
    """Of the epochs that began and ended in that time."""
    ends = sorted(at for at in training.ends_of(lines).values() if begin <= at <= end)
    return (len(ends) - 1) / (ends[-1] - ends[0])


def tables() -> list[Table]:
    if len(_turns) < 2:
        return []
    mean, spread = statistics.mean(_turns), CERTAIN * statistics.stdev(_turns) / math.sqrt(len(_turns))
    lost, least, most = (f"{100 * (1 - math.exp(each)):+.2f} %" for each in (mean, mean + spread, mean - spread))
    print(f"  training loses {lost} by {len(_turns)} turns, with 95 % certainty {least} to {most}", flush=True)
    words = f"Of each turn of {TURN:g} s beside those before and after it, in which nothing is measured."
    cells = (str(len(_turns)), lost, f"{least} to {most}")
    return [Table("What training loses, in one run", ("turns", "mean", "95 % interval"), (cells,), words)]


def cases(extent: Extent) -> Iterator[Case]:
    _turns.clear()
    with jobs.own_home():
        run = OneRun(5 * TURN if extent.quick else TRAINED)
        ways = (
            Way(WITHOUT, "floor", partial(run.reading, WITHOUT), at_most=1),
            Way(WITH, "ours", partial(run.reading, WITH), at_most=1),
        )
        yield Case((TRAINING, LOSS), training.RANKS, ways, 1)
        for ranks in extent.pick((1, 4, 16), (2,)):
            alone = Way(ALONE, "ours", partial(share_of_a_cpu, ranks), at_most=AT_REST)
            yield Case((CPU,), ranks, (Way(WAKES, "floor", of_a_bare_process, at_most=AT_REST), alone))


METRIC = Metric(
    "S20",
    "Measuring a host and its ranks",
    "The digits example of S12 on one host, in one run: the program that measures the host stands still "
    f"for {TURN:g} seconds, goes on for as long, and so on; what training loses is told by the rate of each turn in "
    "which it goes on beside those of the turns before and after. And the CPU "
    "that this program takes beside ranks that wait, by what it keeps of itself; the floor is a process that wakes up "
    "as often and does nothing.",
    cases,
    tables=tables,
)
