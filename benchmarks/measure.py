"""Interleaved timings of several ways to do a thing, with the machine that they were taken on."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Run = Callable[[], float]
"""Does the thing once and returns its seconds."""


def machine() -> str:
    """The machine in one line."""
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    models = {line.partition(":")[2].strip() for line in processors if line.startswith("model name")}
    gib = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    load = os.getloadavg()[0]
    return (
        f"{', '.join(models) or platform.processor()}, {len(os.sched_getaffinity(0))} CPUs, {gib:.0f} GiB, "
        f"Linux {platform.release()}, Python {platform.python_version()}, load {load:.2f}"
    )


def command(argv: Sequence[str], env: Mapping[str, str] | None = None) -> float:
    """Seconds that a command takes as a whole process."""
    started = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    return time.perf_counter() - started


def interleaved(ways: Mapping[str, Run], runs: int) -> dict[str, list[float]]:
    """Time every way `runs` times, in an order that turns round each time, after one warm-up each."""
    for run in ways.values():
        run()
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(runs):
        names = list(ways) if number % 2 == 0 else list(reversed(ways))
        for name in names:
            taken[name].append(ways[name]())
    return taken


def report(title: str, taken: Mapping[str, Sequence[float]], floor: str, unit: str = "ms") -> None:
    """Print min, median and max of each way, and its median beside that of the floor."""
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6}[unit]
    base = statistics.median(taken[floor])
    width = max(len(name) for name in taken)
    print(f"\n{title}\n{machine()}; {len(taken[floor])} runs each, interleaved; floor: {floor}")
    for name, seconds in taken.items():
        middle = statistics.median(seconds)
        low, high = min(seconds) * scale, max(seconds) * scale
        print(
            f"  {name:{width}}  median {middle * scale:8.1f} {unit}  min {low:8.1f}  max {high:8.1f}  "
            f"floor {(middle - base) * scale:+8.1f}  x {middle / base:.2f}"
        )
