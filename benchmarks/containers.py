"""A hello world on containers: `fit()` from call to return, beside the engine alone.

    python benchmarks/containers.py [--runs 9] [--hosts 2 8]

The floor is what the engine needs for as many containers that run `true`: a network, containers made, started, waited
for and removed, four calls at a time, through the same SDK; no more in parallel is faster. Beside it stands the world
without containers, twice: the same job with as many hosts that are processes, and, stricter, `mpirun` with as many
ranks on one host and the flags that start it fastest, where no daemon and no second host is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import docker
import measure
from estimator_container import mpi
from hello_world import HELLO

from estimator_sdk import Estimator
from estimator_sdk.docker import engine
from estimator_sdk.docker.containers import PARALLEL
from estimator_sdk.images import build, catalogue

IMAGE = catalogue.MPI.name


def bare_containers(count: int) -> float:
    """Seconds that the engine needs to make, run and remove containers with nothing in them."""
    started = time.perf_counter()
    client = docker.from_env()
    network = client.networks.create(f"bare-{os.getpid()}", driver="bridge")
    with ThreadPoolExecutor(PARALLEL) as pool:

        def each(call: Callable[[object], object], items: object) -> list[object]:
            return list(pool.map(call, items))

        create = client.containers.create
        containers = each(lambda _: create(IMAGE, ["true"], network=network.name), range(count))
        each(lambda container: container.start(), containers)
        each(lambda container: container.wait(), containers)
        each(lambda container: container.remove(force=True), containers)
    network.remove()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 8])
    settings = parser.parse_args()
    build.ensure(engine.connect(), IMAGE, sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ESTIMATOR_HOME"] = folder
        script = Path(folder, "hello.py")
        script.write_text(HELLO)
        for hosts in settings.hosts:
            compare(script, hosts, settings.runs)


def compare(script: Path, hosts: int, runs: int) -> None:
    """Print the figures for one number of hosts."""
    estimator = Estimator(
        entry_point=script, image_uri=IMAGE, instance_count=hosts, distribution={"mpi": {"enabled": True}}
    )

    def fit(chosen: Estimator) -> float:
        started = time.perf_counter()
        chosen.fit(logs="none")
        return time.perf_counter() - started

    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    best = ["--oversubscribe", "-mca", "pml", "ob1", "-mca", "btl", "self,vader", "-mca", "oob_tcp_if_include", "lo"]
    best += ["-mca", "mpi_yield_when_idle", "1"]
    bare_mpi = [mpi.find("mpirun"), *root, *best, "-np", str(hosts), sys.executable, str(script)]
    as_processes = Estimator(entry_point=script, instance_count=hosts, distribution={"mpi": {"enabled": True}})
    floor, alone, world = f"{hosts} bare containers", f"mpirun -np {hosts} on one host", f"fit() on {hosts} processes"
    ways: dict[str, measure.Run] = {
        floor: lambda: bare_containers(hosts),
        alone: lambda: measure.command(bare_mpi),
        world: lambda: fit(as_processes),
        "fit()": lambda: fit(estimator),
    }
    with contextlib.redirect_stdout(io.StringIO()):
        taken = measure.interleaved(ways, runs)
    measure.report(f"hello world, {hosts} containers x 1 process", taken, floor, "s")
    for other in (world, alone):
        both = statistics.median(taken[floor]) + statistics.median(taken[other])
        print(f"  fit() / ({floor} + {other}) = {statistics.median(taken['fit()']) / both:.2f}, of medians")


if __name__ == "__main__":
    main()
