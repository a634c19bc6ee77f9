"""What is read of a host: its cgroup where the host is one, else the machine.

Sources: proc(5); "Control Group v2", "Memory Resource Controller", "CPU Accounting Controller" and "PSI - Pressure
Stall Information" of the kernel's documentation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ..runtime import machine
from . import metric_table as table
from .metric_table import SeriesKey

CGROUP = "/sys/fs/cgroup"
_TICKS = os.sysconf("SC_CLK_TCK")
_SECTOR = 512  # bytes that /proc/diskstats counts in, whatever the disk's own are
_PASSED_ON = ("loop", "ram", "zram", "dm-", "md", "sr", "fd")  # what they transfer, other disks transfer, or none


class KernelFile:
    """A file of the kernel that is read again and again, by one open descriptor."""

    def __init__(self, path: str) -> None:
        """Raises OSError where there is none."""
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """What it says now. Raises OSError when it says nothing more."""
        data = b""
        while piece := os.pread(self._fd, 1 << 14, len(data)):
            data += piece
        return data

    def close(self) -> None:
        """Read it no more."""
        os.close(self._fd)


def kernel_file_or_none(path: str) -> KernelFile | None:
    """That file, if this kernel has it and lets it be read."""
    try:
        file = KernelFile(path)
        file.read()
    except OSError:
        return None
    return file


class MachineLoad:
    """Reads what a host does."""

    def __init__(self, cgroup: str = CGROUP) -> None:
        self._v2 = os.path.exists(os.path.join(cgroup, "memory.current"))
        self._v1 = not self._v2 and _is_limited_v1(cgroup)
        self._cgroup = cgroup
        self._files: dict[str, KernelFile | None] = {}
        self.cpus = _cpus(cgroup)
        """How many CPUs the host may use."""
        self._limit = self._memory_limit()

    def levels(self) -> Mapping[SeriesKey, float]:
        """What has a value at each moment."""
        found = {SeriesKey(table.CPU_COUNT): self.cpus, SeriesKey(table.MEMORY_LIMIT): self._limit}
        found[SeriesKey(table.MEMORY)] = self._memory()
        return found

    def totals(self) -> Mapping[SeriesKey, float]:
        """What only grows: how much it grows in a second, in the unit of its metric, is what is kept.

        That of CPU is in seconds of all CPUs, over the number of CPUs.
        """
        found = {SeriesKey(table.CPU): self._cpu_share()}
        for source in (self._disks, self._network, self._faults, self._pressure):
            found.update(source())
        return found

    def _read(self, path: str) -> bytes:
        if path not in self._files:
            self._files[path] = kernel_file_or_none(path)
        file = self._files[path]
        return file.read() if file is not None else b""

    def _of_cgroup(self, name: str) -> bytes:
        return self._read(os.path.join(self._cgroup, name))

    def _memory_limit(self) -> float:
        limits = [machine.memory_bytes()]
        for name in ("memory.max", "memory/memory.limit_in_bytes"):
            text = machine.kernel_file(os.path.join(self._cgroup, name)).strip()
            limits += [int(text)] if text.isdigit() else []
        return float(min(limits))

    def _memory(self) -> float:
        if self._v2 or self._v1:
            of_v1 = "" if self._v2 else "memory/"
            used = self._of_cgroup("memory.current" if self._v2 else "memory/memory.usage_in_bytes")
            cached = dict(map(bytes.split, self._of_cgroup(f"{of_v1}memory.stat").splitlines()))
            name = b"inactive_file" if self._v2 else b"total_inactive_file"
            return max(0.0, float(used) - float(cached.get(name, 0)))
        lines = self._read("/proc/meminfo").splitlines()
        facts = {line.partition(b":")[0]: int(line.split()[1]) for line in lines[:3]}
        return 1024.0 * (facts[b"MemTotal"] - facts[b"MemAvailable"])

    def _cpu_share(self) -> float:
        if self._v2:
            return int(self._of_cgroup("cpu.stat").split()[1]) / 1e6 / self.cpus
        usage = self._of_cgroup("cpuacct/cpuacct.usage") if self._v1 else b""
        return int(usage) / 1e9 / self.cpus if usage else busy_seconds(self._read("/proc/stat")) / (os.cpu_count() or 1)

    def _disks(self) -> Iterator[tuple[SeriesKey, float]]:
        if self._v2:
            read = written = 0
            for line in self._of_cgroup("io.stat").splitlines():
                facts = dict(word.split(b"=") for word in line.split()[1:] if b"=" in word)
                read += int(facts.get(b"rbytes", 0))
                written += int(facts.get(b"wbytes", 0))
        else:
            read, written = transferred(self._read("/proc/diskstats"), _whole_disks())
        yield SeriesKey(table.DISK, None, table.READ), read
        yield SeriesKey(table.DISK, None, table.WRITE), written

    def _network(self) -> Iterator[tuple[SeriesKey, float]]:
        lines = (line.split(b":") for line in self._read("/proc/net/dev").splitlines()[2:])
        counts = [list(map(int, rest.split())) for name, rest in lines if name.strip() != b"lo"]
        yield SeriesKey(table.NETWORK, None, table.RECEIVE), sum(each[0] for each in counts)
        yield SeriesKey(table.NETWORK, None, table.TRANSMIT), sum(each[8] for each in counts)

    def _faults(self) -> Iterator[tuple[SeriesKey, float]]:
        data = self._of_cgroup("memory.stat") if self._v2 else self._read("/proc/vmstat")
        at = data.find(b"pgmajfault ")
        if at >= 0:
            yield SeriesKey(table.MAJOR_FAULTS, None, "major"), int(data[at:].split(None, 2)[1])

    def _pressure(self) -> Iterator[tuple[SeriesKey, float]]:
        for resource in ("cpu", "memory", "io"):
            path = f"{self._cgroup}/{resource}.pressure" if self._v2 else f"/proc/pressure/{resource}"
            for line in self._read(path).splitlines():
                kind, *words = line.decode().split()
                part = resource if kind == "some" else f"{resource} {kind}"
                yield SeriesKey(table.PRESSURE, None, part), int(words[-1].partition("=")[2]) / 1e6


def busy_seconds(stat: bytes) -> float:
    """Seconds in which CPUs have worked, all of them together, by the first line of `/proc/stat`."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, stat.split(b"\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + softirq) / _TICKS


def transferred(diskstats: bytes, disks: set[bytes]) -> tuple[int, int]:
    """Bytes that these disks have read and written, by `/proc/diskstats`."""
    lines = [words for words in map(bytes.split, diskstats.splitlines()) if words[2] in disks]
    return sum(int(words[5]) for words in lines) * _SECTOR, sum(int(words[9]) for words in lines) * _SECTOR


def _whole_disks() -> set[bytes]:
    try:
        return {os.fsencode(name) for name in os.listdir("/sys/block") if not name.startswith(_PASSED_ON)}
    except OSError:
        return set()


def _cpus(cgroup: str) -> float:
    """As `machine.cpus`, with the fraction that a quota may grant."""
    allowed = float(len(os.sched_getaffinity(0)))
    quota = machine.cgroup_quota()
    return allowed if quota is None else min(allowed, quota)


def _is_limited_v1(cgroup: str) -> bool:
    """Whether what is shown of cgroup v1 is a group of its own: only the root one names an agent of releases."""
    folder = os.path.join(cgroup, "memory")
    has_usage = os.path.exists(os.path.join(folder, "memory.usage_in_bytes"))
    return has_usage and not os.path.exists(os.path.join(folder, "release_agent"))
