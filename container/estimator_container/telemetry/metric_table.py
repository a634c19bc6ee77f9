"""What is measured: the only home of the names, the units and the precision of metrics.

Names and units are those of OpenTelemetry's semantic conventions for systems, processes and hardware where these have
one; what a convention counts as a total is given as its rate here, so its unit is one per second. Names that no
convention has are marked as ours.
"""

from __future__ import annotations

from typing import NamedTuple


class MetricKind(NamedTuple):
    """A line of the table."""

    name: str
    unit: str
    """As UCUM writes it: `1` is a share from 0 to 1, `By` bytes, `Cel` degrees Celsius, `{x}` a number of these."""
    precision: float
    """What is kept is a whole multiple of it."""
    attribute: str
    """What tells the several series of one host or rank apart; empty where there is one."""
    is_of_ranks: bool
    """Whether each rank has it, of all processes below the script; else the host has it."""
    is_ours: bool
    """Whether no convention has the name."""
    meaning: str


class SeriesKey(NamedTuple):
    """One series of a host."""

    metric: str
    rank: int | None = None
    """The rank; None for what the host has, and for a script without a world."""
    part: str = ""
    """The value of the metric's attribute, such as `read`."""


CPU = "system.cpu.utilization"
CPU_COUNT = "system.cpu.logical.count"
MEMORY = "system.memory.usage"
MEMORY_LIMIT = "system.memory.limit"
MAJOR_FAULTS = "system.paging.faults"
DISK = "system.disk.io"
NETWORK = "system.network.io"
PRESSURE = "system.pressure"
RANK_CPU = "process.cpu.utilization"
RANK_MEMORY = "process.memory.usage"
RANK_DISK = "process.disk.io"
RANK_THREADS = "process.thread.count"
RANK_PROCESSES = "process.count"
RANK_FAULTS = "process.paging.faults"
RANK_GPU_MEMORY = "process.gpu.memory.usage"
GPU = "hw.gpu.utilization"
GPU_MEMORY = "hw.gpu.memory.usage"
GPU_MEMORY_LIMIT = "hw.gpu.memory.limit"
GPU_POWER = "hw.power"
GPU_TEMPERATURE = "hw.temperature"
GPU_THROTTLE = "hw.gpu.throttle_reasons"
GPU_CORRECTED = "hw.gpu.errors.corrected"
GPU_UNCORRECTED = "hw.gpu.errors.uncorrected"
GPU_XID = "hw.gpu.errors.xid"
OWN_CPU = "telemetry.cpu.utilization"

SHARE, PAGE, KIB = 1e-4, 4096.0, 1024.0
READ, WRITE, RECEIVE, TRANSMIT = "read", "write", "receive", "transmit"
_GPU = "hw.id"


def _of_host(
    name: str, unit: str, precision: float, meaning: str, attribute: str = "", is_ours: bool = False
) -> MetricKind:
    return MetricKind(name, unit, precision, attribute, False, is_ours, meaning)


def _of_rank(
    name: str, unit: str, precision: float, meaning: str, attribute: str = "", is_ours: bool = False
) -> MetricKind:
    return MetricKind(name, unit, precision, attribute, True, is_ours, meaning)


METRICS = (
    _of_host(CPU, "1", SHARE, "share of the host's CPUs that is busy"),
    _of_host(CPU_COUNT, "{cpu}", 0.01, "CPUs that the host may use, by its cgroup's quota and its affinity"),
    _of_host(MEMORY, "By", PAGE, "memory in use that cannot be given to others at once"),
    _of_host(MEMORY_LIMIT, "By", PAGE, "memory that the host may use"),
    _of_host(MAJOR_FAULTS, "{fault}/s", 0.5, "page faults that waited for a disk", "system.paging.fault.type"),
    _of_host(DISK, "By/s", KIB, "bytes that disks transferred", "disk.io.direction"),
    _of_host(NETWORK, "By/s", KIB, "bytes on all interfaces but the loopback", "network.io.direction"),
    _of_host(
        PRESSURE,
        "1",
        SHARE,
        "share of the time in which some or all (full) tasks waited for a resource, by the kernel's pressure stalls",
        "resource and kind",
        is_ours=True,
    ),
    _of_rank(RANK_CPU, "1", SHARE, "share of the host's CPUs that the rank's processes used"),
    _of_rank(RANK_MEMORY, "By", PAGE, "resident memory, summed over processes, so shared pages count several times"),
    _of_rank(RANK_DISK, "By/s", KIB, "bytes that the rank's processes had transferred by disks", "disk.io.direction"),
    _of_rank(RANK_THREADS, "{thread}", 1.0, "threads of the rank's processes"),
    _of_rank(RANK_PROCESSES, "{process}", 1.0, "processes of the rank", is_ours=True),
    _of_rank(RANK_FAULTS, "{fault}/s", 0.5, "page faults that waited for a disk", "process.paging.fault.type"),
    _of_rank(RANK_GPU_MEMORY, "By", PAGE, "memory of a GPU that the rank's processes use", _GPU, is_ours=True),
    _of_host(GPU, "1", SHARE, "share of the time in which a kernel ran on the GPU", _GPU),
    _of_host(GPU_MEMORY, "By", PAGE, "memory of the GPU in use", _GPU),
    _of_host(GPU_MEMORY_LIMIT, "By", PAGE, "memory of the GPU", _GPU),
    _of_host(GPU_POWER, "W", 0.1, "power that the GPU draws", _GPU),
    _of_host(GPU_TEMPERATURE, "Cel", 1.0, "temperature of the GPU", _GPU),
    _of_host(GPU_THROTTLE, "1", 1.0, "why its clocks are lowered: NVML's bits, 0 for not at all", _GPU, is_ours=True),
    _of_host(GPU_CORRECTED, "{error}", 1.0, "memory errors since the driver was loaded, corrected", _GPU, is_ours=True),
    _of_host(GPU_UNCORRECTED, "{error}", 1.0, "the same, not corrected", _GPU, is_ours=True),
    _of_host(GPU_XID, "1", 1.0, "number of the last critical XID error of the GPU, 0 for none", _GPU, is_ours=True),
    _of_host(OWN_CPU, "1", 1e-5, "share of one CPU that measuring takes", is_ours=True),
)
"""The table, in the order in which metrics are shown."""
KINDS = {kind.name: kind for kind in METRICS}
