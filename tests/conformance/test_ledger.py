"""R7: where the time of a job went."""

from __future__ import annotations

import json

import pytest

from estimator_sdk import Job
from estimator_sdk.cli.main import main
from tests.conformance.jobs import UP_AND_WAIT, base_directory, events, wait_until_up
from tests.waiting import SECONDS

STEP_SECONDS = 0.1
TRAINS = f"""
import os, pathlib, signal, time
from estimator_container.training import mark_step
checkpoints = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
rank = int(os.environ.get("RANK", "0"))
start = max([int(path.name) for path in checkpoints.glob("[0-9]*")], default=0)
def train(steps, barrier=lambda: None, every=None):
    for step in range(start + 1, steps + 1):
        time.sleep({STEP_SECONDS})
        barrier()
        mark_step(step)
        print("step", step, time.time(), flush=True)
        if every and step % every == 0 and rank == 0:
            (checkpoints / ".new").touch()
            os.rename(checkpoints / ".new", checkpoints / str(step))
"""
IN_A_WORLD = f"{TRAINS}\nfrom mpi4py import MPI\nbarrier = MPI.COMM_WORLD.barrier\n"


def told_by_the_script(job: Job, rank: int | None = 0, host: str = "algo-1") -> list[dict[int, float]]:
    """When each step ended as the script saw it, of each attempt: a busy machine makes steps longer."""
    attempts: list[dict[int, float]] = []
    for line in job.logs(rank=rank, host=host, stream="stdout"):
        word, step, ended = line.data.split()
        assert word == b"step"
        if not attempts or int(step) in attempts[-1]:
            attempts.append({})
        attempts[-1][int(step)] = float(ended)
    return attempts


def checked_ledger(job: Job):
    """The ledger of a job, which keeps to the law."""
    ledger = job.ledger()
    assert ledger.wall == pytest.approx(job.ended - job.created)
    assert sum(ledger.seconds.values()) == pytest.approx(ledger.wall, rel=0.01)
    assert min(ledger.seconds.values()) >= 0
    assert ledger.seconds["unattributed"] <= 0.05 * ledger.wall
    return ledger


@pytest.mark.law("R7")
def test_the_steps_of_a_plain_job_are_its_goodput(script):
    job = script.run(f"{IN_A_WORLD}\ntrain(31, barrier)", hosts=2, processes=2)
    ledger = checked_ledger(job)
    assert (ledger.source, ledger.ranks) == ("steps", 4)
    (ends,) = told_by_the_script(job)
    assert ends[31] - ends[1] >= 30 * STEP_SECONDS
    assert ledger.seconds["steps"] == pytest.approx(ends[31] - ends[1], rel=0.35)
    assert ledger.goodput == pytest.approx(ledger.seconds["steps"] / ledger.wall)
    assert ledger.seconds["lost_steps"] == 0
    assert ledger.seconds["launch"] > 0 and ledger.seconds["first_step"] >= STEP_SECONDS
    (told,) = [event for event in events(job, "training_steps") if event["steps"][0] == 31 and event["ranks"][0] == 0]
    assert told["numbers"][0] == 31


@pytest.mark.law("R7")
def test_without_a_world_a_script_can_tell_its_steps_too(script):
    job = script.run(f"{TRAINS}\ntrain(21)", hosts=2)
    ledger = checked_ledger(job)
    assert (ledger.source, ledger.ranks) == ("steps", 2)
    seen = [told_by_the_script(job, None, host)[0] for host in job.hosts]
    assert ledger.seconds["steps"] == pytest.approx(sum(ends[21] - ends[1] for ends in seen) / 2, rel=0.35)


@pytest.mark.law("R7")
def test_after_a_restart_the_steps_that_are_done_again_are_lost(script, tmp_path):
    source = f"""{IN_A_WORLD}
train(17, barrier, every=10)  # of which 7 are done again
if start == 0:
    time.sleep(1)  # until the checkpoint is published
    print("step", 18, time.time(), flush=True)  # which rank 3 does not end
    barrier()
    os.kill(os.getpid(), signal.SIGKILL) if rank == 3 else time.sleep(600)
start = max(start, 17)
train(28, barrier)
"""
    options = {"checkpoint_s3_uri": f"file://{tmp_path}/store", "restart_policy": {"on": ["signal"]}}
    job = script.run(source, hosts=2, processes=2, **options)
    ledger = checked_ledger(job)
    assert ledger.source == "steps"
    assert len(job.attempts) == len(ledger.attempts) == 2
    first, second = told_by_the_script(job)
    # The second that rank 3 lets pass before it dies is a step that never ended.
    assert ledger.seconds["lost_steps"] == pytest.approx(first[18] - first[10], rel=0.35, abs=1.0)
    assert ledger.seconds["steps"] == pytest.approx(first[10] - first[1] + second[28] - second[11], rel=0.35, abs=1.0)
    assert ledger.seconds["restore"] > 0 and ledger.seconds["restart"] > 0 and ledger.seconds["notice"] < 10
    assert sum(cost.steps for cost in ledger.attempts) == pytest.approx(ledger.seconds["steps"])
    assert ledger.attempts[0].why == job.attempts[0].verdict.message and ledger.attempts[1].why == ""


@pytest.mark.law("R7")
def test_a_job_that_failed_keeps_what_is_in_its_checkpoints(script, tmp_path):
    source = f"{IN_A_WORLD}\ntrain(16, barrier, every=8)\nbarrier()\nraise ValueError('no such digit')"
    for options, kept in (({"checkpoint_s3_uri": f"file://{tmp_path}/store"}, True), ({}, False)):
        failed = script.fail(source, hosts=2, processes=1, **options)
        job = Job.attach(failed.job_name)
        ledger = checked_ledger(job)
        (ends,) = told_by_the_script(job)
        steps = ledger.seconds["steps"] + ledger.seconds["lost_steps"]
        assert steps == pytest.approx(ends[16] - ends[1], rel=0.35, abs=1.0)
        assert (ledger.goodput > 0) == kept


@pytest.mark.law("R7", "E4")
def test_a_job_that_is_stopped_has_a_ledger(script):
    job = script.estimator(UP_AND_WAIT, hosts=2, processes=1).fit(wait=False)
    wait_until_up(job, 2)
    running = job.ledger()
    assert sum(running.seconds.values()) == pytest.approx(running.wall, rel=0.01)
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    ledger = job.ledger()
    assert ledger.source == "output"
    assert sum(ledger.seconds.values()) == pytest.approx(ledger.wall, rel=0.01)


@pytest.mark.law("R7")
def test_a_rank_that_is_killed_has_told_its_steps(script, tmp_path):
    """What it has counted is in memory that its host reads."""
    killed = "os.kill(os.getpid(), signal.SIGKILL) if rank == 1 else time.sleep(600)"
    source = f"{IN_A_WORLD}\ntrain(8, barrier)\nbarrier()\n{killed}"
    failed = script.fail(source, hosts=1, processes=2)
    job = Job.attach(failed.job_name)
    counts = [dict(zip(event["ranks"], event["steps"], strict=True)) for event in events(job, "training_steps")]
    assert {rank: max(count.get(rank, 0) for count in counts) for rank in (0, 1)} == {0: 8, 1: 8}
    assert (base_directory(job, "algo-1") / "output" / "training-steps").is_file()


@pytest.mark.law("R7")
def test_where_the_time_went_is_shown_wherever_a_job_is(script, tmp_path, capsys):
    job = script.run(f"{IN_A_WORLD}\ntrain(6, barrier)", hosts=1, processes=1)
    sentence = job.ledger().sentence()
    assert sentence.startswith("goodput ")
    assert sentence in capsys.readouterr().out
    assert main(["describe", job.name]) == 0
    assert sentence.removeprefix("goodput ") in capsys.readouterr().out
    assert main(["describe", "--json", job.name]) == 0
    assert json.loads(capsys.readouterr().out)["ledger"] == job.ledger().to_json()
