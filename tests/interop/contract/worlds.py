"""The MPI jobs of a toolkit. The package sleeps for 30 seconds at the end of each, so they run beside the rest."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from .containers import Host, Job, Toolkit, network

# The package looks for Open MPI's daemon once a second, for 20 minutes if the daemon is faster than that.
SCRIPT = """
import json, os, pathlib, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
time.sleep(10)
hosts = world.gather(MPI.Get_processor_name())
seen = world.gather({"arguments": sys.argv[1:], "environment": dict(os.environ)})
if world.rank == 0:
    report = {"hosts": hosts, "seen": seen, "ended": time.time()}
    pathlib.Path("/opt/ml/model/report.json").write_text(json.dumps(report))
"""
TOKEN = "only-the-job-knows-this"
MPI = {"sagemaker_mpi_enabled": "true", "lr": "0.5"}
TWO = {
    **MPI,
    "sagemaker_mpi_num_of_processes_per_host": "2",
    "sagemaker_mpi_custom_mpi_options": json.dumps("-x 'QUOTED=a*b' --NCCL_DEBUG WARN"),
}
HOSTS = ("algo-1", "algo-2")
SECRET = {"input/config/worldsecret": "the same on both"}


@contextlib.contextmanager
def start(toolkit: Toolkit, folder: Callable[[str], Path]) -> Iterator[dict[str, list[Host]]]:
    """At the same time: a world on two hosts, one without a number of processes, one with a wrong number."""
    with contextlib.ExitStack() as stack:
        name = stack.enter_context(network())
        wrong = {**MPI, "sagemaker_mpi_num_of_processes_per_host": '"1"'}
        described = {
            "two": Job({"train.py": SCRIPT}, SECRET, TWO, environment={"TOKEN": TOKEN}, hosts=HOSTS, network=name),
            "default": Job({"train.py": SCRIPT}, {}, MPI),
            "wrong": Job({"train.py": SCRIPT}, SECRET, wrong, hosts=("algo-3", "algo-4"), network=name),
        }
        yield {each: stack.enter_context(toolkit.start(job, folder(each))) for each, job in described.items()}
