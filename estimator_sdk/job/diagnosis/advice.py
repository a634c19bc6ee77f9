"""What to try against a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .machine_load import HostLoad
from .shares import Kind

BUSY, DISK = 0.85, 0.25
"""From which share of its CPUs on a host is busy, and from which share of the time on it waits for a disk."""
_MORE_WORKERS = (
    "load with more workers at once (`num_workers` of DataLoader, `num_parallel_calls` of `tf.data`), and ahead of "
    "time (`prefetch`)"
)
_AGAINST: Mapping[Kind, str] = {
    "communication": "send less or less often: larger batches, gradients accumulated over several steps, compression; "
    "or put the ranks on fewer hosts",
    "checkpoint": "write checkpoints less often, or write a copy in the background",
    "idle": "look for what the script itself waits for, such as a sleep, a lock, a service or a file; py-spy shows "
    "where it stands",
}
MORE_CPUS = (
    "look at what else runs there (`estimator top`), start fewer ranks, threads and workers on a host, or give it "
    "more CPUs"
)
"""Where processes wait for a CPU."""
OF_SLOW_RANK: Mapping[Kind, str] = {
    "input": "look at what that rank reads: a slower disk, larger files, or more of them than the others have",
    "checkpoint": "have all ranks share that work, or do it in the background",
    "idle": "look for what that rank waits for: a lock, a service, a file",
    "computing": "look at what else runs on its machine, whether its CPU or GPU is slowed down, and whether its "
    "batches are larger",
}
"""Against that of which it does more than the others."""


def against(kind: Kind, loads: Sequence[HostLoad]) -> str:
    """What to try against something that takes time on all ranks; `loads` say what their hosts had to do."""
    if kind != "input":
        return _AGAINST[kind]
    if not loads:
        return f"{_MORE_WORKERS}; what the hosts had to do meanwhile is not known, for they were not measured"
    busiest = max(loads, key=lambda load: load.cpu)
    waits = max(loads, key=lambda load: load.disk_pressure)
    if busiest.cpu >= BUSY:
        return (
            f"the CPUs of {busiest.host} are {percent(busiest.cpu)} busy, so more workers would take them from the "
            "training: store the data decoded or smaller, cache it, or give a host more CPUs"
        )
    if waits.disk_pressure >= DISK:
        return (
            f"tasks on {waits.host} waited for its disk in {percent(waits.disk_pressure)} of the time: keep the data "
            "in memory or on a faster disk, or put many small files into few large ones"
        )
    used = busiest.cpu * busiest.cpus
    return f"{busiest.host}, the busiest host, uses {used:.1f} of its {busiest.cpus:g} CPUs: {_MORE_WORKERS}"


def percent(share: float) -> str:
    """As people write it."""
    return f"{100 * share:.0f} %"
