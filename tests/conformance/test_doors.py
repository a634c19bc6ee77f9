"""Every door only builds a `JobSpec`: the same 2 x 2 job through each, on every backend, is the same job."""

from __future__ import annotations

import inspect
import json
import os
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from estimator_sdk import HorovodRunner, Job, JobFailed, list_jobs, remote
from tests.interop.notebooks import kernels

MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}
RANKS = [[0, 4, 0, "algo-1"], [1, 4, 1, "algo-1"], [2, 4, 0, "algo-2"], [3, 4, 1, "algo-2"]]
WORDS = "two words, ü and '"
base = 100  # a variable around the function


def work(words: str, steps: int = 1, leave: int | None = None) -> int:
    from pathlib import Path

    from mpi4py import MPI as world_of

    world = world_of.COMM_WORLD
    host = os.environ["SM_CURRENT_HOST"]
    ranks = world.gather([world.rank, world.size, int(os.environ["LOCAL_RANK"]), host])
    if leave == world.rank:
        sys.exit(7)
    world.Barrier()
    if world.rank == 0:
        told = {"ranks": ranks, "arguments": [words, steps]}
        Path(os.environ["SM_MODEL_DIR"], "told.json").write_text(json.dumps(told))
        Path(os.environ["SM_OUTPUT_DATA_DIR"], "data.txt").write_text(words)
    return base + world.allreduce(world.rank)


SCRIPT = f"""
import argparse, json, os, sys

base = 100
{inspect.getsource(work)}
parser = argparse.ArgumentParser()
parser.add_argument("--words")
parser.add_argument("--steps", type=int)
parser.add_argument("--leave", type=int)
value = work(**vars(parser.parse_args()))
if os.environ["RANK"] == "0":
    print("value", value)
"""


def by_script(where: Mapping[str, Any], script: Any, arguments: Mapping[str, Any]) -> int:
    job = script.run(SCRIPT, hosts=2, processes=2, hyperparameters=arguments)
    (said,) = [line.data.split() for line in job.logs(rank=0, stream="stdout")]
    assert said[0] == b"value"
    return int(said[1])


def by_horovod_runner(where: Mapping[str, Any], script: Any, arguments: Mapping[str, Any]) -> int:
    return HorovodRunner(np=4, instance_count=2, **where).run(work, **arguments)


def by_decorator(where: Mapping[str, Any], script: Any, arguments: Mapping[str, Any]) -> int:
    return remote(instance_count=2, distribution=MPI, **where)(work)(**arguments)


def by_notebook(where: Mapping[str, Any], script: Any, arguments: Mapping[str, Any]) -> int:
    """The function is a cell's, and so is the variable that it uses."""
    cells = [
        "import json, os, sys\nfrom estimator_sdk import HorovodRunner\nbase = 100",
        inspect.getsource(work),
        f"value = HorovodRunner(np=4, instance_count=2, **{dict(where)!r}).run(work, **{dict(arguments)!r})",
        "print(value)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    try:
        kernels.execute(notebook, 600)
    except CellExecutionError as error:
        assert error.ename == "JobFailed", error
        list_jobs()[0].wait()  # raises it here too
    return int(notebook.cells[-1].outputs[0]["text"])


DOORS = [by_script, by_horovod_runner, by_decorator, by_notebook]
Door = Callable[[Mapping[str, Any], Any, Mapping[str, Any]], int]


@pytest.mark.parametrize("door", DOORS)
def test_a_job_has_the_same_ranks_arguments_and_outputs_through_every_door(where, script, door: Door, tmp_path):
    assert door(where, script, {"words": WORDS, "steps": 3}) == 106
    job = list_jobs()[0]
    told = json.loads((job.download(tmp_path / "model") / "told.json").read_text())
    assert told == {"ranks": RANKS, "arguments": [WORDS, 3]}
    assert output_of(job, "data.txt") == WORDS.encode()
    assert job.status == "Completed"
    assert list(job.logs(stream="stderr")) == []


@pytest.mark.parametrize("door", DOORS)
def test_a_rank_that_leaves_gives_the_same_verdict_through_every_door(where, script, door: Door):
    with pytest.raises(JobFailed) as failed:
        door(where, script, {"words": WORDS, "leave": 3})
    verdict = failed.value.verdict
    assert (verdict.kind, verdict.host, verdict.rank, verdict.exit_code) == ("exit_code", "algo-2", 3, 7)
    assert verdict.victims == (0, 1, 2)


def test_an_exception_of_the_users_own_comes_from_the_other_host(where):
    class OddDigit(Exception):
        pass

    def fail() -> None:
        if os.environ["RANK"] == "3":
            raise OddDigit("no such digit")
        from mpi4py import MPI as world_of

        world_of.COMM_WORLD.Barrier()

    with pytest.raises(OddDigit, match="no such digit") as raised:
        HorovodRunner(np=4, instance_count=2, **where).run(fail)
    assert isinstance(raised.value.__cause__, JobFailed)
    assert 'raise OddDigit("no such digit")' in str(raised.value.__cause__)


def output_of(job: Job, name: str) -> bytes:
    with tarfile.open(str(Path(str(job.output_data).removeprefix("file://")))) as archive:
        opened = archive.extractfile(name)
        assert opened is not None
        return opened.read()
