"""Steps: lines that every rank runs, each after all ranks have ended the one before."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from estimator_sdk import Job, JobFailed, JobSpec

from .jobs import events, left_of, tell

RANKS = 4
STEPS = 4
STEP = """
import os, random, sys, time
step, seed, failing = sys.argv[1], sys.argv[2], sys.argv[3]
rank = os.environ["RANK"]
print("begin", step, time.monotonic_ns(), flush=True)  # one clock for all processes and containers of a machine
time.sleep(random.Random(f"{seed} {step} {rank}").uniform(0, 0.3))
print("end", step, time.monotonic_ns(), flush=True)
sys.exit(7 if failing == f"{step}:{rank}" else 0)
"""


@pytest.fixture
def steps_of(script):
    """An estimator of 2 x 2 ranks, unless it is said otherwise, whose steps run in a folder with those files."""

    def made(files, steps, *, hosts=2, processes=2, **arguments):
        return script.estimator(files, entry_point=None, steps=steps, hosts=hosts, processes=processes, **arguments)

    return made


@pytest.fixture
def seed():
    value = random.SystemRandom().randrange(10**9)
    print(f"seed {value}")
    return value


def marks(job, out):
    """(what, step) -> when, of each rank."""
    text = "".join(out(job, rank=rank).decode().rpartition("\n")[0] + "\n" for rank in range(RANKS))
    lines = [line.split() for line in text.splitlines() if line]  # whole ones: a rank may be killed in one
    found = {}
    for what, step, when in lines:
        found.setdefault((what, int(step)), []).append(int(when))
    return found


def lines_of(seed, failing="none"):
    return [f"python step.py {step} {seed} {failing}" for step in range(STEPS)]


def test_no_rank_begins_a_step_before_all_have_ended_the_one_before(steps_of, out, seed):
    job = steps_of({"step.py": STEP}, lines_of(seed)).fit(logs="none")
    found = marks(job, out)
    assert {key: len(times) for key, times in found.items()} == {
        (what, step): RANKS for what in ("begin", "end") for step in range(STEPS)
    }
    for step in range(STEPS - 1):
        assert max(found["end", step]) < min(found["begin", step + 1])


def test_a_failing_line_ends_the_job_and_names_its_rank_and_step(steps_of, out, seed):
    chosen = random.Random(seed)
    step, rank = chosen.randrange(STEPS), chosen.randrange(RANKS)
    lines = lines_of(seed, f"{step}:{rank}")
    with pytest.raises(JobFailed) as failed:
        steps_of({"step.py": STEP}, lines, base_job_name=f"fails-{seed}").fit(logs="none")
    verdict = failed.value.verdict
    assert (verdict.rank, verdict.host, verdict.exit_code) == (rank, f"algo-{rank // 2 + 1}", 7)
    assert verdict.step == str(step + 1)
    assert verdict.message == (
        f"step {verdict.step!r} ({lines[step]}): rank {rank} on algo-{rank // 2 + 1} exited with code 7"
    )
    found = marks(Job.attach(failed.value.job_name), out)
    assert max(each for _, each in found) == step


def test_each_step_is_a_world_of_its_own_with_the_same_ranks(steps_of, out):
    world = """
from mpi4py import MPI
import os
world = MPI.COMM_WORLD
print(world.rank, world.size, world.allreduce(world.rank), os.environ["RANK"], os.environ["SM_CURRENT_HOST"])
"""
    steps = ["python world.py", {"name": "in a shell", "run": 'python world.py && echo "$RANK of $WORLD_SIZE"'}]
    job = steps_of({"world.py": world}, steps).fit(logs="none")
    for rank in range(RANKS):
        line = f"{rank} {RANKS} 6 {rank} algo-{rank // 2 + 1}\n"
        assert out(job, rank=rank).decode() == f"{line}{line}{rank} of {RANKS}\n"
    told = events(job, "step_started")
    assert [(each["step"], each["number"], each["of"]) for each in told] == [("1", 1, 2), ("in a shell", 2, 2)]


@pytest.mark.parametrize("processes", [None, 1])
def test_steps_that_end_at_once_all_run_in_order(steps_of, out, processes):
    job = steps_of({"empty": ""}, [f"echo {step}" for step in range(12)], hosts=3, processes=processes).fit(logs="none")
    for host in ("algo-1", "algo-2", "algo-3"):
        assert out(job, host=host).decode().split() == [str(step) for step in range(12)]


def test_without_a_world_every_host_runs_each_step_once(steps_of, out):
    steps = ["echo $SM_CURRENT_HOST $SM_HP_LR > mine", "cat mine; echo two"]
    job = steps_of({"empty": ""}, steps, processes=None, hyperparameters={"lr": 0.5}).fit(logs="none")
    for host in ("algo-1", "algo-2"):
        assert out(job, host=host).decode() == f"{host} 0.5\ntwo\n"


def test_an_exception_ends_a_step_although_the_others_wait_in_mpi(steps_of):
    source = """
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 2:
    raise ValueError("no such digit")
MPI.COMM_WORLD.barrier()
"""
    with pytest.raises(JobFailed) as failed:
        steps_of({"train.py": source}, ["true", {"name": "train", "run": "python train.py"}]).fit(logs="none")
    verdict = failed.value.verdict
    assert (verdict.kind, verdict.rank, verdict.step) == ("exception", 2, "train")
    assert "ValueError: no such digit" in verdict.message


def test_a_step_ends_at_the_first_command_that_fails(steps_of, out):
    with pytest.raises(JobFailed) as failed:
        steps_of({"empty": ""}, ["echo one\nfalse\necho two\n"], hosts=1, processes=1).fit(logs="none")
    assert failed.value.verdict.exit_code == 1
    assert "step '1' (echo one …)" in failed.value.verdict.message


def test_a_stop_ends_the_step_and_begins_no_other(steps_of, out):
    steps = ["echo one", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done", "echo three"]
    job = steps_of({"empty": ""}, steps).fit(wait=False)
    up = set()
    for line in job.logs(stream="stdout", follow=True):
        up |= {line.rank} if line.data == b"up\n" else set()
        if len(up) == RANKS:
            break
    job.stop()
    job.wait()
    assert job.status == "Stopped"
    assert [out(job, rank=rank) for rank in range(RANKS)] == [b"one\nup\n"] * RANKS
    assert left_of(job) == []


def test_a_late_rank_is_named_while_the_others_wait(steps_of):
    line = 'if [ "$RANK" = 3 ]; then while [ ! -e "$SM_OUTPUT_DATA_DIR/go" ]; do sleep 0.1; done; fi'
    job = steps_of({"empty": ""}, [{"name": "wait", "run": line}, "echo done"]).fit(wait=False)
    for said in job.logs(stream="toolkit", follow=True):
        if b"have waited" in said.data:
            break
    assert said.data == b"step 'wait': rank 3 on algo-2 is still running, and the others have waited 10 s\n"
    tell(job, "go", "algo-2")
    job.wait()
    assert job.status == "Completed"
    assert next((each["ranks"], each["hosts"]) for each in events(job, "ranks_late")) == ([3], ["algo-2"])


def test_the_document_of_a_job_with_steps_runs_the_same_steps(steps_of, out, backend):
    estimator = steps_of({"empty": ""}, ["echo $RANK", {"name": "b", "run": "echo $RANK 'a  b' \"ü\""}])
    spec = JobSpec.from_request(estimator.plan().request)
    assert JobSpec.from_request(spec.to_request()) == spec
    job = replace(spec, training_job_name=f"{spec.training_job_name[:50]}-again").fit(backend=backend, logs="none")
    assert [out(job, rank=rank).decode() for rank in range(RANKS)] == [f"{n}\n{n} a  b ü\n" for n in range(RANKS)]
