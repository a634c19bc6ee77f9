"""What is read of each rank: of all processes below its script.

CPU, faults and bytes of a process that has ended are counted where its parent has collected it, for the kernel adds
them to the parent's. Sources: proc(5), `stat`, `io` and `task/TID/children`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping

from . import metric_table as table
from .machine_load import KernelFile
from .metric_table import SeriesKey

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
SCAN_SHARE = 5e-4
"""Of a CPU, which looking for new processes may take: with many threads they are looked for less often."""


class _Process:
    """One process, by descriptors that stay with it, whoever has its number later."""

    def __init__(self, pid: int) -> None:
        """Raises OSError."""
        self._stat = KernelFile(f"/proc/{pid}/stat")
        self._io: KernelFile | None = None
        with contextlib.suppress(OSError):
            self._io = KernelFile(f"/proc/{pid}/io")

    def stat(self) -> list[bytes]:
        """The fields of `stat` from the third on. Raises OSError when the process is gone."""
        # The name in parentheses may itself hold spaces and parentheses.
        return self._stat.read().rpartition(b")")[2].split()

    def transferred(self) -> tuple[int, int]:
        """Bytes that disks have read and written for it."""
        try:
            lines = self._io.read().splitlines() if self._io is not None else []
        except OSError:
            return 0, 0
        facts = dict(line.split(b": ") for line in lines)
        return int(facts.get(b"read_bytes", 0)), int(facts.get(b"write_bytes", 0))

    def close(self) -> None:
        self._stat.close()
        if self._io is not None:
            self._io.close()


class RankLoad:
    """Reads what the processes of one rank do."""

    def __init__(self, rank: int | None, pid: int, cpus: float) -> None:
        """`pid` is that of the script; `cpus` are those that the host may use."""
        self.rank = rank
        self.pid = pid
        self._cpus = cpus
        self._processes: dict[int, _Process] = {}
        self._next_scan = 0.0

    @property
    def pids(self) -> frozenset[int]:
        """Those of its processes that are known."""
        return frozenset(self._processes)

    def read(self) -> tuple[dict[SeriesKey, float], dict[SeriesKey, float]]:
        """What has a value at each moment, and what only grows, as `MachineLoad` has them; empty after its end."""
        self._scan()
        stats: list[list[bytes]] = []
        read = written = 0
        for pid, process in list(self._processes.items()):
            try:
                stats.append(process.stat())
            except OSError:
                self._processes.pop(pid).close()
                continue
            bytes_read, bytes_written = process.transferred()
            read, written = read + bytes_read, written + bytes_written
        if not stats:
            return {}, {}
        levels: dict[SeriesKey, float] = {
            self._key(table.RANK_MEMORY): _sum(stats, 21) * _PAGE,
            self._key(table.RANK_THREADS): _sum(stats, 17),
            self._key(table.RANK_PROCESSES): len(stats),
        }
        totals = {
            self._key(table.RANK_CPU): _sum(stats, 11, 12, 13, 14) / _TICKS / self._cpus,
            self._key(table.RANK_FAULTS, "major"): _sum(stats, 9, 10),
            self._key(table.RANK_DISK, table.READ): read,
            self._key(table.RANK_DISK, table.WRITE): written,
        }
        return levels, totals

    def close(self) -> None:
        """Read it no more."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()

    def _key(self, metric: str, part: str = "") -> SeriesKey:
        return SeriesKey(metric, self.rank, part)

    def _scan(self) -> None:
        """Look which processes there are, as often as that may be done."""
        now = time.monotonic()
        if now < self._next_scan:
            return
        began = time.process_time()
        found = {self.pid, *_below(self.pid)}
        for pid in found - self._processes.keys():
            with contextlib.suppress(OSError):
                self._processes[pid] = _Process(pid)
        for pid in self._processes.keys() - found:
            self._processes.pop(pid).close()
        self._next_scan = now + (time.process_time() - began) / SCAN_SHARE


def _below(root: int) -> set[int]:
    found, queue = set[int](), [root]
    while queue:
        children = set(_children(queue.pop())) - found
        found |= children
        queue += children
    return found


def _children(pid: int) -> Iterator[int]:
    """Those that any thread of a process has started, and who live."""
    folder = f"/proc/{pid}/task"
    with contextlib.suppress(OSError):
        for thread in os.listdir(folder):
            with contextlib.suppress(OSError), open(f"{folder}/{thread}/children", "rb", buffering=0) as file:
                yield from map(int, file.read().split())


def _sum(stats: list[list[bytes]], *fields: int) -> int:
    return sum(int(stat[field]) for stat in stats for field in fields)


class Rates:
    """Makes rates of totals."""

    def __init__(self) -> None:
        self._before: Mapping[SeriesKey, float] = {}
        self._at = 0.0

    def of(self, totals: Mapping[SeriesKey, float], now: float) -> dict[SeriesKey, float]:
        """How much each total has grown a second since the call before, at monotonic times; what is new has none."""
        before, self._before = self._before, totals
        seconds, self._at = now - self._at, now
        if seconds <= 0:
            return {}
        return {key: max(0.0, total - before[key]) / seconds for key, total in totals.items() if key in before}
