"""Measure a host and its ranks: `measure.py FOLDER RANKS`, a program of its own beside the ranks.

It keeps what it finds in FOLDER, as `history` has it, and takes the ranks from the file RANKS, to which the toolkit
appends `RANK PID` whenever one starts. It ends when nobody reads its standard output any more.
"""

from __future__ import annotations

import math
import os
import select
import sys
import time

sys.path.append(os.path.abspath(os.path.join(__file__, "../../..")))

from estimator_container.runtime import machine
from estimator_container.telemetry import metric_table as table
from estimator_container.telemetry.history import LEVELS
from estimator_container.telemetry.machine_load import MachineLoad
from estimator_container.telemetry.metric_table import SeriesKey
from estimator_container.telemetry.rank_load import RankLoad, Rates
from estimator_container.telemetry.recording import History

TYPE_CHECKING = False
if TYPE_CHECKING:
    from estimator_container.telemetry.gpu_load import GpuLoad

CPU_SHARE = 0.002
"""Of one CPU, which measuring takes at most; where once in two seconds would take more, it is done less often."""
NO_RANK = -1  # as in `logs.frames`


class Meter:
    """Measures a host."""

    def __init__(self, ranks: str, gpus: GpuLoad | None = None) -> None:
        """`ranks` is the file that names the ranks."""
        self._machine = MachineLoad()
        self._gpus = gpus
        self._file = ranks
        self._read_to = 0
        self._ranks: dict[int, RankLoad] = {}
        self._rates = Rates()
        self._spent = time.process_time()
        self._at = time.monotonic()

    def measure(self) -> dict[SeriesKey, float]:
        """The values now; rates are those since the call before. It never takes the same rank's end for a value."""
        self._take_ranks()
        levels, totals = dict(self._machine.levels()), dict(self._machine.totals())
        for number, rank in list(self._ranks.items()):
            found = rank.read()
            if not found[0]:
                self._ranks.pop(number).close()
            levels.update(found[0])
            totals.update(found[1])
        if self._gpus is not None:
            levels.update(self._gpus.read((rank.rank, rank.pids) for rank in self._ranks.values()))
        now = time.monotonic()
        return {**levels, **self._rates.of(totals, now), SeriesKey(table.OWN_CPU): self._own_share(now)}

    def _own_share(self, now: float) -> float:
        spent, before = time.process_time(), self._spent
        seconds, self._spent, self._at = now - self._at, spent, now
        return (spent - before) / seconds if seconds > 0 else 0.0

    def _take_ranks(self) -> None:
        try:
            if os.stat(self._file).st_size == self._read_to:
                return
            with open(self._file, "rb") as file:
                file.seek(self._read_to)
                data = file.read()
        except OSError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in whole.splitlines():
            number, pid = map(int, line.split())
            if number in self._ranks:
                self._ranks.pop(number).close()
            self._ranks[number] = RankLoad(None if number == NO_RANK else number, pid, self._machine.cpus)


class Timetable:
    """When to measure: at whole multiples of the finest level's seconds, at fewer of them where that costs too much."""

    def __init__(self) -> None:
        self._cost = 0.0
        """Seconds of CPU of one measurement, the newest of which counts most."""

    def next_time(self, now: float) -> float:
        """When to measure next, in seconds since 1970, later than `now`."""
        step = LEVELS[0].seconds * max(1, math.ceil(self._cost / (CPU_SHARE * LEVELS[0].seconds)))
        return (now // step + 1) * step

    def took(self, seconds: float) -> None:
        """A measurement took so much of a CPU."""
        self._cost = seconds if self._cost == 0 else 0.75 * self._cost + 0.25 * seconds


def main(folder: str, ranks: str) -> None:
    """Measure until nobody reads the standard output."""
    meter, timetable, history = Meter(ranks, _gpus()), Timetable(), None
    meter.measure()  # from which the first rates count
    reader = select.poll()
    reader.register(1, 0)
    due = timetable.next_time(time.time())
    while True:
        if reader.poll(max(0.0, 1000 * (due - time.time()))):
            return
        began = time.process_time()
        values = meter.measure()
        try:
            history = history or History(folder)
            history.add(round(1000 * due), values)
        except OSError:  # a full disk ends nothing; where there is room again, another file begins
            if history is not None:
                history.close()
            history = None
        timetable.took(time.process_time() - began)
        due = timetable.next_time(max(time.time(), due))  # a clock may be set back


def _gpus() -> GpuLoad | None:
    if machine.gpus() == 0:
        return None
    from estimator_container.telemetry.gpu_load import GpuLoad, NvmlMissing

    try:
        return GpuLoad(visible=os.environ.get("CUDA_VISIBLE_DEVICES"))
    except NvmlMissing:
        return None


if __name__ == "__main__":
    main(*sys.argv[1:])
