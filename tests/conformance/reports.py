"""A job whose script reports all that it sees: its arguments, its variables and its world, and leaves a model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from estimator_sdk import Job
from tests.conformance.conftest import Script

WRITE = """
import os
host = os.environ["SM_CURRENT_HOST"]
for variable in ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR"):
    folder = os.environ[variable]
    open(os.path.join(folder, f"from-{host}"), "w").write(host)
    os.makedirs(os.path.join(folder, "deep"), exist_ok=True)
    open(os.path.join(folder, "deep", "same"), "w").write(host)
"""
"""Leaves a model and output data that tell whose they are."""
REPORT = (
    WRITE
    + """import json, sys
report = {"arguments": sys.argv[1:], "environment": dict(os.environ)}
if "OMPI_COMM_WORLD_RANK" in os.environ:
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    node = world.Split_type(MPI.COMM_TYPE_SHARED)
    sizes = {"rank": world.rank, "size": world.size, "node_rank": node.rank, "node_size": node.size}
    report["world"] = {**sizes, "sum": world.allreduce(world.rank)}
print(json.dumps(report))
print("err", os.environ.get("RANK"), file=sys.stderr)
"""
)
STRINGS = {
    "plain": "hello",
    "spaces": "  a  b  ",
    "quotes": """it's "quoted" `so`""",
    "newlines": "one\ntwo\r\n\tthree",
    "shell": "$(id) ${HOME} $$ ; rm -rf / & | > x < y * ? [a] ~ \\ !",
    "unicode": "žluťoučký kůň 馬 🐎 \u200b",
    "empty": "",
    "number": "1e3",
    "text_of_json": '{"a": [1, "b"]}',
    "null": "null",
    "dash": "--lr",
    "colon": ":",
    "percent": "%s %d {x}",
}
VALUES: dict[str, tuple[object, str]] = {
    "b": (True, "True"),
    "Zeta": (False, "False"),
    "none": (None, ""),
    "integer": (3, "3"),
    "real": (1e-05, "1e-05"),
    "big": (10**20, "100000000000000000000"),
    "list": ([1, "two", 3.0, None, True], "[1, 'two', 3.0, None, True]"),
    "dict": ({"k": "v", "a": 1}, "a=1,k=v"),
    "under_score": (1, "1"),
    "da-sh": (2, "2"),
}
"""Values of each kind that JSON has, and the word that the contract makes of them."""
FEW = {"lr": 0.5, "da-sh": [1]}
ENVIRONMENT = {"MINE": "yes", **{f"MY_{name.upper()}": value for name, value in STRINGS.items()}}


@dataclass(frozen=True)
class Reported:
    """A job that has ended, and what each of its ranks has reported, or each host where there are no ranks."""

    job: Job
    ranks: list[dict[str, Any]]


def run(script: Script, hosts: int, processes: int | None, few: bool) -> Reported:
    every = {**STRINGS, **{name: value for name, (value, _) in VALUES.items()}}
    arguments: dict[str, Any] = {"hosts": hosts, "processes": processes, "hyperparameters": FEW if few else every}
    if script.where.get("backend") != "sagemaker":  # whose channels and outputs are in S3
        data = script.folder / "data"
        data.mkdir()
        arguments["environment"] = ENVIRONMENT
        arguments["inputs"] = {"train": f"file://{data}"}
        arguments["output_path"] = f"file://{script.folder / 'output'}"
    job = script.run(REPORT, **arguments)
    return Reported(job, [json.loads(_said(job, processes, index)) for index in range(hosts * (processes or 1))])


def _said(job: Job, processes: int | None, index: int) -> bytes:
    who: dict[str, Any] = {"host": f"algo-{index + 1}"} if processes is None else {"rank": index}
    return b"".join(line.data for line in job.logs(stream="stdout", **who))
