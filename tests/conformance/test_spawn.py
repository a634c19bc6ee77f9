"""Ranks that ranks start while the job runs: they have what all ranks have. Windows, which few scripts open."""

from __future__ import annotations

import re

import pytest

from estimator_sdk import Job
from tests.waiting import SECONDS

from .jobs import left_of

PARENT = """
import sys
from mpi4py import MPI
{before}
children = MPI.COMM_WORLD.Spawn(sys.executable, args=["child.py"], maxprocs={count})
{after}
"""
CHILD = """
import os, sys, time
from mpi4py import MPI
world, parent = MPI.COMM_WORLD, MPI.Comm.Get_parent()
{body}
"""
PATIENT = 'print("up", flush=True)\ntime.sleep(600)'


def files(after: str, body: str, count: int = 2, before: str = "") -> dict[str, str]:
    return {
        "train.py": PARENT.format(before=before, after=after, count=count),
        "child.py": CHILD.format(body=body),
    }


@pytest.mark.law("W2")
@pytest.mark.law("L2")
def test_ranks_can_start_others_which_have_what_ranks_have(script, out):
    after = """
print(children.gather(None, root=MPI.ROOT) if MPI.COMM_WORLD.rank == 0 else children.gather(None, root=MPI.PROC_NULL))
children.Disconnect()
"""
    body = """
print(world.rank, world.size, os.environ["RANK"], os.environ["SM_CURRENT_HOST"], os.path.basename(os.getcwd()))
print("a word", file=sys.stderr)
parent.gather((world.rank, os.environ["GREETING"]), root=0)
parent.Disconnect()
"""
    job = script.run(files(after, body), hosts=2, processes=2, environment={"GREETING": "a b"})
    assert out(job, rank=0) == b"[(0, 'a b'), (1, 'a b')]\n"
    children = [line for line in job.logs() if line.tag.startswith("[2,") and line.stream == "stdout"]
    assert sorted(re.sub("algo-[12]", "HOST", line.tagged().decode()) for line in children) == [
        "[2,0]<stdout>:0 2 0 HOST code\n",
        "[2,1]<stdout>:1 2 1 HOST code\n",
    ]
    for line in children:
        assert line.data.split()[3].decode() == line.host
        assert list(job.logs(rank=line.rank, stream="stdout")) == [line]
    assert sorted(line.tagged() for line in job.logs(stream="stderr")) == [
        b"[2,0]<stderr>:a word\n",
        b"[2,1]<stderr>:a word\n",
    ]


POOL = """
from mpi4py.futures import MPIPoolExecutor
import os

def square(x):
    return x * x

if __name__ == "__main__":
    with MPIPoolExecutor(max_workers=2) as pool:
        print(sum(pool.map(square, range(100))))
"""


@pytest.mark.law("W2")
@pytest.mark.parametrize("hosts", [1, 2])
def test_a_pool_of_mpi4py_computes(script, out, hosts):
    job = script.run(POOL, hosts=hosts, processes=1)
    assert [out(job, rank=rank) for rank in range(hosts)] == [b"328350\n"] * hosts


@pytest.mark.law("E2")
@pytest.mark.parametrize(
    ("failure", "kind", "code"),
    [
        ("raise ValueError('no such digit')", "exception", 1),
        ("sys.exit(7)", "exit_code", 7),
        ("world.Abort(5)", "exit_code", 5),
        ("os._exit(0)", "early_exit", 0),
    ],
)
def test_a_spawned_rank_that_fails_is_named(script, failure, kind, code):
    failed = script.fail(
        files("children.Barrier()", f"if world.rank == 1: {failure}\nparent.Barrier()"), hosts=2, processes=1
    )
    verdict = failed.verdict
    assert (verdict.kind, verdict.exit_code) == (kind, code), str(failed)
    assert verdict.message.startswith(f"rank 1 of world 2 on {verdict.host} ")
    if kind == "exception":
        assert verdict.detail.startswith("Traceback") and "script_runner" not in verdict.detail
        assert verdict.detail.rstrip().endswith("ValueError: no such digit")
        assert verdict.victims == (0, 1)
    assert left_of(Job.attach(failed.job_name)) == []


@pytest.mark.law("E3")
def test_a_failure_ends_spawned_ranks(script):
    failed = script.fail(
        files("children.recv(source=1)\nsys.exit(3)", f"if world.rank: parent.send(1, 0)\n{PATIENT}"),
        hosts=2,
        processes=1,
    )
    assert failed.verdict.exit_code == 3 and failed.verdict.rank in (0, 1)
    assert left_of(Job.attach(failed.job_name)) == []


@pytest.mark.law("E4")
def test_a_stop_reaches_spawned_ranks_which_have_the_grace_period(script, out):
    body = """
import signal
def last_words(signum, frame):
    time.sleep(0.5)
    os.write(1, b"saved\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, last_words)
print("up", flush=True)
time.sleep(600)
"""
    job = script.estimator(files("import time; time.sleep(600)", body), hosts=2, processes=1).fit(wait=False)
    lines = (line.rank for line in job.logs(follow=True, stream="stdout") if line.data == b"up\n")
    up = [next(lines), next(lines)]
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert [out(job, rank=rank) for rank in up] == [b"up\nsaved\n"] * 2
    assert left_of(job) == []


@pytest.mark.law("E1")
def test_a_job_ends_when_its_spawned_ranks_have(script, out):
    body = "parent.Disconnect()\ntime.sleep(1)\nprint('done')"
    job = script.run(files("children.Disconnect()", body), hosts=2, processes=1)
    assert [line.data for line in job.logs(stream="stdout")] == [b"done\n"] * 2


@pytest.mark.turn("process")
@pytest.mark.law("E1")
def test_ranks_that_wait_for_spawned_ones_that_work_are_not_accused(script):
    works = """
with open(os.devnull, "w", buffering=1) as nowhere:
    for _ in range(80):
        print("a step", file=nowhere)
        time.sleep(0.1)
parent.Barrier()
parent.Disconnect()
"""
    script.run(files("children.Barrier()\nchildren.Disconnect()", works, count=1), hosts=2, processes=1, hang_timeout=6)


WINDOW = """
import numpy
from mpi4py import MPI
world = MPI.COMM_WORLD
mine = numpy.full(4, world.rank, "i")
window = MPI.Win.Create(mine, comm=world)
theirs = numpy.empty(4, "i")
window.Lock((world.rank + 1) % world.size)
window.Get(theirs, (world.rank + 1) % world.size)
window.Unlock((world.rank + 1) % world.size)
print(theirs.tolist())
world.Barrier()
window.Free()
"""


@pytest.mark.law("W2")
def test_ranks_read_each_others_windows(script, out):
    job = script.run(WINDOW, hosts=2, processes=2)
    for rank in range(4):
        assert out(job, rank=rank) == f"{[(rank + 1) % 4] * 4}\n".encode()
