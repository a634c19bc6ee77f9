"""R: another attempt on the same hosts, and when there is none."""

from __future__ import annotations

import os
import re
import signal
import time
import uuid
from pathlib import Path

import pytest
from estimator_container.agents.checkpoints.restore import restore, snapshots
from estimator_container.storage import open_store

from estimator_sdk import Job, JobFailed
from estimator_sdk.backends.docker import engine
from tests.conformance.jobs import (
    MEET,
    UP_AND_WAIT,
    base_directory,
    container_of,
    events,
    freeze_host,
    freeze_hosts,
    kill_host,
    left_of,
    processes_of,
    signal_host,
    signals_to,
    supervisor_of,
    tell,
    toolkit_of,
    wait_until_up,
)
from tests.waiting import SECONDS, kill, kill_all, wait_for, wait_until_gone, wait_until_stopped

AGAIN = {"on": ["signal", "exit_code", "exception", "deadlock", "mpi", "frozen"], "max": 20}
PRELUDE = """
import json, os, pathlib, signal, subprocess, sys, time
checkpoints = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
rank = int(os.environ.get("RANK", "0"))
attempt = len(list(checkpoints.glob("attempt-*"))) + 1
leads = rank == 0 and os.environ["SM_CURRENT_HOST"] == "algo-1"
def keep(name, text="kept"):
    (checkpoints / f".{name}").write_text(text)
    os.rename(checkpoints / f".{name}", checkpoints / name)
def wait_until_published():
    time.sleep(0.5)  # what is whole then is published with the end of the attempt, if not before
"""
# In each attempt but the last, a rank leaves what it can and dies, once it is told to, while the others wait.
DIES = f"""{PRELUDE}
found = sorted(path.name for path in checkpoints.iterdir())
print("found", attempt, found, sorted(os.listdir(os.environ["SM_MODEL_DIR"])), flush=True)
print("restarts", *(os.environ.get(f"TORCHELASTIC_{{name}}") for name in ("RESTART_COUNT", "MAX_RESTARTS")), flush=True)
WAIT_FOR_OTHERS
if attempt == 3:
    (pathlib.Path(os.environ["SM_MODEL_DIR"]) / "model").write_text("whole")
    sys.exit()
subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)",
                  os.environ["SM_MODEL_DIR"]], start_new_session=True)
pathlib.Path(os.environ["SM_MODEL_DIR"], f"of-{{attempt}}-{{rank}}").write_text("half")
if leads:
    keep(f"attempt-{{attempt}}")
    half = (checkpoints / "half").open("w")
    print("x", file=half, flush=True)
print("up", flush=True)
if rank == 3 or (os.environ["SM_CURRENT_HOST"] == "algo-2" and "RANK" not in os.environ):
    while not pathlib.Path(os.environ["SM_CHANNEL_TRAIN"], f"die-{{attempt}}").exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(600)
"""
WORLDS = {
    "none": (None, "time.sleep(0.2)"),
    "mpi": ("mpi", "from mpi4py import MPI; MPI.COMM_WORLD.barrier()"),
    "torch_distributed": ("torch_distributed", MEET),
}


def hosts_of(job: Job) -> list[object]:
    """What tells the hosts of this moment from others of the same names."""
    hosts = job._started.record().hosts
    return [container_of(job, host).id if job.backend == "docker" else toolkit_of(job, host) for host in hosts]


def wait_for_attempt(job: Job, number: int, ranks: int) -> None:
    wait_for(lambda: len(job.attempts) == number, SECONDS)
    ups = number * ranks
    wait_for(lambda: sum(line.data == b"up\n" for line in job.logs(stream="stdout")) >= ups, SECONDS)


def wait_until_kept(tmp_path: Path, name: str) -> None:
    """Until the store has a file: once a rank has died with another one half written, nothing new is published."""
    uri = f"file://{tmp_path}/store"

    def is_kept() -> bool:
        store, target = open_store(uri), tmp_path / uuid.uuid4().hex
        if not list(snapshots(store)):
            return False
        target.mkdir()
        restore(store, str(target))
        return (target / name).exists()

    wait_for(is_kept, SECONDS)


def wait_until_it_failed(job: Job) -> None:
    """Until its first attempt has, and all hosts stand by."""
    wait_for(lambda: job.attempts, SECONDS)
    wait_for(lambda: events(job, "attempt_failed"), SECONDS)


def model_of(job: Job, attempt: int) -> list[str]:
    return sorted(path.name for path in (base_directory(job, "algo-1", attempt) / "model").iterdir())


@pytest.mark.law("R1", "E8")
@pytest.mark.parametrize("world", list(WORLDS))
def test_the_same_hosts_run_the_next_attempt(script, out, tmp_path, world):
    name, meet = WORLDS[world]
    options = {} if name is None else {"distribution": {name: {"enabled": True, "processes_per_host": 2}}}
    ranks = 2 if name is None else 4
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one").write_text("1")
    job = script.estimator(
        DIES.replace("WAIT_FOR_OTHERS", meet),
        hosts=2,
        checkpoint_s3_uri=f"file://{tmp_path}/store",
        restart_policy=AGAIN,
        **options,
    ).fit({"train": f"file://{tmp_path}/data"}, wait=False)
    wait_for_attempt(job, 1, ranks)
    hosts = hosts_of(job)
    wait_until_kept(tmp_path, "attempt-1")
    (tmp_path / "data" / "die-1").touch()
    wait_for_attempt(job, 2, ranks)
    assert hosts_of(job) == hosts
    wait_until_kept(tmp_path, "attempt-2")
    (tmp_path / "data" / "die-2").touch()
    assert job.wait(SECONDS) == "Completed"

    # Each attempt found the newest snapshot, and nothing that was in none.
    lines = out(job, host="algo-1", rank=0 if name else None).decode().splitlines()
    kept = [f"attempt-{number}" for number in (1, 2)]
    assert [line for line in lines if line.startswith("found")] == [
        f"found {number} {kept[: number - 1]} []" for number in (1, 2, 3)
    ]
    restarts = [f"restarts {number} 20" for number in range(3)] if name == "torch_distributed" else None
    assert [line for line in lines if line.startswith("restarts")] == (restarts or ["restarts None None"] * 3)
    # Nothing was prepared twice.
    for phase in ("code", "channels"):
        told = [
            event
            for number in (1, 2, 3)
            for event in events(job, "phase_started", attempt=number)
            if event["phase"] == phase
        ]
        assert len(told) == 1, phase
    # Logs, verdicts and outputs of each attempt are apart, and the model is the last one's.
    assert len({path.read_bytes() for path in job.log_files}) == 6
    *failed, last = job.attempts
    assert [(each.verdict.kind, each.verdict.signal) for each in failed] == [("signal", "SIGKILL")] * 2
    assert last.verdict is None
    for number in (1, 2):
        assert model_of(job, number) == [f"of-{number}-{rank}" for rank in range(1 if name is None else 2)]
        left = base_directory(job, "algo-1", number) / "output" / "failure"
        assert left.read_text().startswith(failed[number - 1].verdict.message)
    assert model_of(job, 3) == ["model"]
    assert left_of(job) == []


@pytest.mark.law("R1")
def test_nothing_of_the_earlier_ranks_is_left(script, checkpoints_uri):
    """What got away in the first attempt would run for ten minutes."""
    source = f"""{PRELUDE}
from mpi4py import MPI
MPI.COMM_WORLD.barrier()
memory = pathlib.Path(os.environ["OMPI_MCA_btl_vader_backing_directory"], str(rank))
if attempt == 1:
    escape = "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.fork(); time.sleep(600)"
    for _ in range(3):
        subprocess.Popen([sys.executable, "-c", escape, "escaped"], start_new_session=True)
    (memory / "folder" / "below").mkdir(parents=True)
    (memory / "folder" / "below" / "file").touch()
    if leads:
        keep("attempt-1")
    wait_until_published()
    MPI.COMM_WORLD.barrier()
    os.abort()
assert not (memory / "folder").exists()
print("up", flush=True)
time.sleep(600)
"""
    options = {"checkpoint_s3_uri": checkpoints_uri, "restart_policy": AGAIN}
    job = script.estimator(source, hosts=2, processes=2, **options).fit(wait=False)
    wait_for_attempt(job, 2, 2)  # four are up, all in the second
    assert [process for process in processes_of(job.folder) if "escaped" in process] == []
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert left_of(job) == []


@pytest.mark.law("R1", "E4")
def test_a_job_can_be_stopped_between_two_attempts(script, tmp_path):
    options = {"restart_policy": {**AGAIN, "backoff": 600}}
    job = script.estimator("import sys; sys.exit(3)", hosts=2, processes=1, **options).fit(wait=False)
    wait_until_it_failed(job)
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert left_of(job) == []


@pytest.mark.law("R1", "E3")
def test_hosts_that_stand_by_end_with_their_supervisor(script, tmp_path):
    options = {"restart_policy": {**AGAIN, "backoff": 600}}
    job = script.estimator("import sys; sys.exit(3)", hosts=2, processes=1, **options).fit(wait=False)
    wait_until_it_failed(job)
    kill(supervisor_of(job))
    assert left_of(job) == []


@pytest.mark.law("R1", "E8")
def test_a_host_that_is_lost_between_two_attempts_is_followed_by_hosts_made_anew(script, tmp_path):
    source = "import os, sys\nsys.exit(0 if os.listdir(os.environ['SM_CHANNEL_FLAG']) else 3)"
    flag = tmp_path / "flag"
    flag.mkdir()
    options = {"restart_policy": {**AGAIN, "backoff": 20}}
    job = script.estimator(source, hosts=2, processes=1, **options).fit({"flag": f"file://{flag}"}, wait=False)
    wait_until_it_failed(job)
    (flag / "now").touch()
    kill_host(job, "algo-2")
    assert job.wait(SECONDS) == "Completed"
    assert len(job.attempts) == 2
    assert left_of(job) == []


@pytest.mark.law("R6")
def test_a_script_that_asks_for_no_other_attempt_gets_none(script):
    failed = script.fail("import sys; sys.exit(93)", hosts=2, restart_policy=AGAIN)
    assert str(failed.verdict.message).endswith("it is not tried again: exit code 93 rules out another attempt")
    assert len(Job.attach(failed.job_name).attempts) == 1


@pytest.mark.law("R6")
def test_a_job_that_ends_three_times_at_the_same_place_is_not_tried_again(script):
    failed = script.fail("raise ValueError('no such digit')", hosts=2, processes=2, restart_policy=AGAIN)
    assert failed.verdict.message.endswith("it is not tried again: 3 attempts in a row have ended at the same place")
    assert len(Job.attach(failed.job_name).attempts) == 3


@pytest.mark.law("R6")
@pytest.mark.parametrize("writes", ["attempt == 1", "True"], ids=["once", "the same again"])
def test_a_job_without_a_newer_checkpoint_in_three_attempts_is_not_tried_again(script, checkpoints_uri, writes):
    source = f"""{PRELUDE}
if {writes}:
    keep("attempt-1")
    wait_until_published()
sys.exit(10 + time.time_ns() % 50)
"""
    options = {"checkpoint_s3_uri": checkpoints_uri, "restart_policy": AGAIN}
    failed = script.fail(source, **options)
    assert failed.verdict.message.endswith("3 attempts in a row have left no newer checkpoint")
    assert len(Job.attach(failed.job_name).attempts) == 4


def test_the_failure_after_which_nothing_follows_is_told_as_ever(script, out):
    """A policy that does not name it changes nothing about how a failure ends a job."""
    failed = script.fail("raise ValueError('no such digit')", hosts=2, restart_policy={"on": ["signal"]})
    assert failed.verdict.kind == "exception" and "ValueError: no such digit" in failed.verdict.message
    job = Job.attach(failed.job_name)
    assert Path(base_directory(job, "algo-1") / "output" / "failure").read_text().startswith(failed.verdict.message)
    assert left_of(job) == []


DIES_WHEN_TOLD = """
import os, pathlib, signal, sys, time
if os.listdir(os.environ["SM_CHANNEL_FLAG"]):
    sys.exit()
print("up", flush=True)
told = pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "die")
while not told.exists():
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.law("R2", "E2b")
@pytest.mark.parametrize("processes", [0, 1], ids=["alone", "mpi"])
@pytest.mark.parametrize("attempts", [0, 1], ids=["once", "tried again"])
def test_a_host_that_dies_is_to_blame_for_its_rank_that_was_heard_to_die_before(script, tmp_path, attempts, processes):
    """The first host hears both at once, the rank first: it is frozen until both have happened."""
    flag = tmp_path / "flag"
    flag.mkdir()
    options = {**({"max_retry_attempts": attempts} if attempts else {}), **({"processes": 1} if processes else {})}
    for _ in range(3):
        (flag / "now").unlink(missing_ok=True)
        job = script.estimator(DIES_WHEN_TOLD, hosts=2, **options).fit({"flag": f"file://{flag}"}, wait=False)
        wait_for(lambda job=job: sum(line.data == b"up\n" for line in job.logs(stream="stdout")) == 2, SECONDS)
        (flag / "now").touch()  # which only ranks that start look for
        send = signals_to(job, "algo-2")
        began = time.monotonic()
        signal_host(job, "algo-1", signal.SIGSTOP)
        tell(job, "die", "algo-2")
        wait_for(lambda job=job: events(job, "rank_ended", "algo-2"), SECONDS)
        send(signal.SIGKILL)
        is_in_time = time.monotonic() - began < 2.0  # or it may have taken the first host's silence for a loss
        signal_host(job, "algo-1", signal.SIGCONT)
        found = job._started.wait(SECONDS)
        if is_in_time:
            break
    assert found.status == ("Completed" if attempts else "Failed")
    verdict = found.attempts[0].verdict
    assert (verdict.kind, verdict.host) == ("host_lost", "algo-2"), verdict
    assert left_of(job) == []


LOSES = f"""{PRELUDE}
from mpi4py import MPI
MPI.COMM_WORLD.barrier()
print("found", attempt, sorted(path.name for path in checkpoints.iterdir()), os.listdir(os.environ["SM_CHANNEL_TRAIN"]),
      MPI.COMM_WORLD.allreduce(rank), flush=True)
if attempt == 3:
    sys.exit()
if leads:
    keep(f"attempt-{{attempt}}")
print("up", flush=True)
time.sleep(600)
"""


def lose_one_after_the_other(script, out, tmp_path, checkpoints_uri, how, lost):
    """Lose one host in the first attempt and one in the second: each is made anew, and no other."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one").write_text("1")
    options = {"checkpoint_s3_uri": checkpoints_uri, "max_retry_attempts": 2}
    job = script.estimator(LOSES, hosts=3, processes=1, **options).fit({"train": f"file://{tmp_path}/data"}, wait=False)
    for attempt, host in enumerate(lost, 1):
        wait_for_attempt(job, attempt, 3)
        wait_for(lambda attempt=attempt: events(job, "checkpoint_published", attempt=attempt), SECONDS)
        before = hosts_of(job)
        how(job, host)
        wait_for_attempt(job, attempt + 1, 3) if attempt == 1 else job.wait(SECONDS)
        if attempt == 1:
            kept = [here == there for here, there in zip(before, hosts_of(job), strict=True)]
            assert kept == [name != host for name in ("algo-1", "algo-2", "algo-3")]
    assert job.status == "Completed"
    for rank in range(3):
        assert out(job, rank=rank).decode().splitlines() == [
            "found 1 [] ['one'] 3",
            "up",
            "found 2 ['attempt-1'] ['one'] 3",
            "up",
            "found 3 ['attempt-1', 'attempt-2'] ['one'] 3",
        ]
    assert [(each.verdict.kind, each.verdict.host) for each in job.attempts[:-1]] == [
        ("host_lost", host) for host in lost
    ]
    assert len({path.read_bytes() for path in job.log_files}) == 9
    assert left_of(job) == []


@pytest.mark.law("R2", "E8")
@pytest.mark.parametrize("how", [kill_host, freeze_host])
def test_a_host_that_is_gone_and_only_that_one_is_made_anew(script, out, tmp_path, checkpoints_uri, how):
    lose_one_after_the_other(script, out, tmp_path, checkpoints_uri, how, ("algo-2", "algo-3"))


def kill_a_rank(job, host):
    tell(job, "die", host)


@pytest.mark.law("R1", "R2")
@pytest.mark.parametrize("how", [kill_a_rank, kill_host])
def test_an_attempt_that_follows_another_waits_for_a_store_that_is_away(script, out, tmp_path, how):
    source = f"""{PRELUDE}
print("began", attempt, flush=True)
if attempt == 2:
    sys.exit()
if leads:
    keep("attempt-1")
print("up", flush=True)
while not pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "die").exists():
    time.sleep(0.01)
os.abort()
"""
    store, away = tmp_path / "store", tmp_path / "away"
    options = {"max_retry_attempts": 1, "restart_policy": AGAIN}
    job = script.estimator(source, hosts=2, processes=1, checkpoint_s3_uri=f"file://{store}", **options).fit(wait=False)
    wait_for_attempt(job, 1, 2)
    wait_until_kept(tmp_path, "attempt-1")
    store.rename(away)
    store.touch()
    how(job, "algo-2")
    wait_for(lambda: len(job.attempts) == 2 and events(job, "checkpoint_failed"))
    (told,) = events(job, "checkpoint_failed")
    assert "cannot be written" in told["reason"]
    store.unlink()
    away.rename(store)
    assert job.wait(SECONDS) == "Completed"
    assert out(job, host="algo-2").decode().splitlines() == ["began 1", "up", "began 2"]
    assert len(job.attempts) == 2
    assert left_of(job) == []


def lose_at_once(script, tmp_path, checkpoints_uri, *lost):
    """A job of three hosts in whose first attempt these are killed."""
    options = {"checkpoint_s3_uri": checkpoints_uri, "max_retry_attempts": 3}
    (tmp_path / "data").mkdir()
    source = LOSES.replace("attempt == 3", "attempt == 2")
    job = script.estimator(source, hosts=3, processes=1, **options).fit(
        {"train": f"file://{tmp_path}/data"}, wait=False
    )
    wait_for_attempt(job, 1, 3)
    wait_for(lambda: events(job, "checkpoint_published"), SECONDS)
    for send in [signals_to(job, host) for host in lost]:  # which are looked for before the first is killed
        send(signal.SIGKILL)
    return job


@pytest.mark.law("R2")
def test_two_hosts_that_are_gone_at_once_are_both_made_anew(script, out, tmp_path, checkpoints_uri):
    job = lose_at_once(script, tmp_path, checkpoints_uri, "algo-2", "algo-3")
    assert job.wait(SECONDS) == "Completed"
    assert out(job, host="algo-3").decode().splitlines()[-1] == "found 2 ['attempt-1'] [] 3"
    assert left_of(job) == []


@pytest.mark.law("R2")
@pytest.mark.parametrize("lost", ["algo-1", "algo-2"])
def test_a_host_that_is_made_anew_knows_how_often_the_job_has_begun_again(script, out, checkpoints_uri, lost):
    source = f"""{PRELUDE}
{MEET}
print("restarts", os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["TORCHELASTIC_MAX_RESTARTS"], flush=True)
if attempt == 2:
    sys.exit()
if leads:
    keep("attempt-1")
print("up", flush=True)
time.sleep(600)
"""
    options = {"checkpoint_s3_uri": checkpoints_uri, "max_retry_attempts": 2}
    options["distribution"] = {"torch_distributed": {"enabled": True}}
    job = script.estimator(source, hosts=2, **options).fit(wait=False)
    wait_for_attempt(job, 1, 2)
    wait_for(lambda: events(job, "checkpoint_published"), SECONDS)
    kill_host(job, lost)
    assert job.wait(SECONDS) == "Completed"
    for rank in range(2):
        assert out(job, rank=rank).decode().splitlines() == ["restarts 0 2", "up", "restarts 1 2"]
    assert left_of(job) == []


@pytest.mark.law("R2")
def test_a_host_that_is_lost_twice_is_named_as_suspect(script, tmp_path, checkpoints_uri):
    options = {"checkpoint_s3_uri": checkpoints_uri, "max_retry_attempts": 2}
    (tmp_path / "data").mkdir()
    job = script.estimator(LOSES, hosts=2, processes=1, **options).fit({"train": f"file://{tmp_path}/data"}, wait=False)
    for attempt in (1, 2):
        wait_for_attempt(job, attempt, 2)
        wait_for(lambda attempt=attempt: events(job, "checkpoint_published", attempt=attempt), SECONDS)
        kill_host(job, "algo-2")
    assert job.wait(SECONDS) == "Completed"
    (told,) = events(job, "host_suspected", attempt=2)
    assert (told["host"], told["failures"]) == ("algo-2", 2)
    assert events(job, "host_suspected", attempt=1) == events(job, "host_suspected") == []
    assert job.why().endswith("\nalgo-2 is suspect: it has failed 2 times within 10 minutes\n")
    assert all(
        re.search(rf"^attempt {number} failed after [0-9.]+ s: .*algo-2", job.why(), re.MULTILINE) for number in (1, 2)
    )


@pytest.mark.law("R2", "E8")
@pytest.mark.parametrize(
    ("how", "lost"),
    [
        (kill_host, ("algo-1", "algo-1")),
        (kill_host, ("algo-1", "algo-2")),
        (kill_host, ("algo-2", "algo-1")),
        (freeze_host, ("algo-1", "algo-3")),
    ],
)
def test_the_others_wait_for_a_first_host_that_is_made_anew(script, out, tmp_path, checkpoints_uri, how, lost):
    lose_one_after_the_other(script, out, tmp_path, checkpoints_uri, how, lost)


@pytest.mark.law("R2")
def test_the_first_host_and_another_that_are_gone_at_once_are_both_made_anew(script, out, tmp_path, checkpoints_uri):
    job = lose_at_once(script, tmp_path, checkpoints_uri, "algo-1", "algo-3")
    assert job.wait(SECONDS) == "Completed"
    for host in ("algo-1", "algo-2", "algo-3"):
        assert out(job, host=host).decode().splitlines()[-1] == "found 2 ['attempt-1'] [] 3"
    assert left_of(job) == []


@pytest.mark.law("R2")
@pytest.mark.parametrize(("hosts", "frozen"), [(2, ("algo-1", "algo-2")), (1, ("algo-1",)), (3, ("algo-1", "algo-2"))])
def test_hosts_that_all_freeze_at_once_are_made_anew(script, out, tmp_path, checkpoints_uri, hosts, frozen):
    """Nobody is left to notice it, or of three the one that waits for another first host alone: the supervisor does."""
    options = {"checkpoint_s3_uri": checkpoints_uri, "max_retry_attempts": 1}
    (tmp_path / "data").mkdir()
    source = LOSES.replace("attempt == 3", "attempt == 2")
    channels = {"train": f"file://{tmp_path}/data"}
    job = script.estimator(source, hosts=hosts, processes=1, **options).fit(channels, wait=False)
    wait_for_attempt(job, 1, hosts)
    wait_for(lambda: events(job, "checkpoint_published"), SECONDS)
    freeze_hosts(job, *frozen)
    assert job.wait(SECONDS) == "Completed"
    for host in frozen:
        assert "code" in [event["phase"] for event in events(job, "phase_started", host)]  # prepared again
    first, last = job.attempts
    assert first.verdict.kind == "host_lost" and "is frozen" in first.verdict.message
    assert first.verdict.host in frozen and last.verdict is None
    assert all(host in first.verdict.message for host in frozen)
    total = sum(range(hosts))
    for rank in range(hosts):
        assert out(job, rank=rank).decode().splitlines() == [
            f"found 1 [] [] {total}",
            "up",
            f"found 2 ['attempt-1'] [] {total}",
        ]
    assert left_of(job) == []


def test_hosts_that_are_killed_at_once_are_all_named(script):
    job = script.estimator(UP_AND_WAIT, hosts=3, processes=1).fit(wait=False)
    wait_until_up(job, 3)
    is_container, hosts = job.backend == "docker", ("algo-1", "algo-2", "algo-3")
    pids = [container_of(job, each).attrs["State"]["Pid"] if is_container else toolkit_of(job, each) for each in hosts]
    for pid in pids:  # so that none sees another one go
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        wait_until_stopped(pid)
    os.kill(supervisor := supervisor_of(job), signal.SIGSTOP)  # or it could take the last one for one that it ends
    try:
        kill_all(pids)
        for pid in pids:
            wait_until_gone(pid)
        if is_container:
            running = {"label": f"{engine.JOB_LABEL}={job.name}"}
            wait_for(lambda: not engine.connect().containers.list(filters=running))
    finally:
        os.kill(supervisor, signal.SIGCONT)
    with pytest.raises(JobFailed) as failed:
        job.wait(SECONDS)
    verdict = failed.value.verdict
    others = sorted({*hosts} - {verdict.host})
    assert verdict.kind == "host_lost" and verdict.message.startswith(f"{verdict.host} was killed by SIGKILL")
    assert re.search(rf"; ({others[0]} and {others[1]}|{others[1]} and {others[0]}) are lost too", verdict.message)
    assert left_of(job) == []


@pytest.mark.law("R2", "E4")
def test_a_job_can_be_stopped_while_its_hosts_wait_for_another_first_one(script, tmp_path, checkpoints_uri):
    options = {"checkpoint_s3_uri": checkpoints_uri, "restart_policy": {"on": ["host_lost"], "backoff": 600}}
    (tmp_path / "data").mkdir()
    job = script.estimator(LOSES, hosts=2, processes=1, **options).fit({"train": f"file://{tmp_path}/data"}, wait=False)
    wait_for_attempt(job, 1, 2)
    kill_host(job, "algo-1")
    wait_for(lambda: events(job, "attempt_failed"), SECONDS)
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert left_of(job) == []


@pytest.mark.law("R5")
def test_what_is_told_to_stop_from_outside_saves_its_work_and_begins_again(script, checkpoints_uri):
    source = f"""{PRELUDE}
from mpi4py import MPI
MPI.COMM_WORLD.barrier()
if attempt == 4:
    sys.exit()
def last_words(signum, frame):
    if leads:
        keep(f"attempt-{{attempt}}")
    sys.exit()
signal.signal(signal.SIGTERM, last_words)
print("up", flush=True)
time.sleep(600)
"""
    options = {"checkpoint_s3_uri": checkpoints_uri, "max_retry_attempts": 1}
    job = script.estimator(source, hosts=2, processes=1, **options).fit(wait=False)
    for attempt, host in ((1, "algo-2"), (2, "algo-1"), (3, "algo-2")):
        wait_for_attempt(job, attempt, 2)
        signal_host(job, host, signal.SIGTERM)
    assert job.wait(SECONDS) == "Completed"
    assert [each.verdict.kind for each in job.attempts[:-1]] == ["preempted"] * 3
    assert left_of(job) == []


@pytest.mark.law("R5")
def test_a_job_of_one_attempt_that_is_told_to_stop_from_outside_says_so(script):
    job = script.estimator(UP_AND_WAIT, hosts=2, processes=1).fit(wait=False)
    wait_until_up(job, 2)
    signal_host(job, "algo-2", signal.SIGTERM)
    with pytest.raises(JobFailed) as failed:
        job.wait(SECONDS)
    assert failed.value.verdict.kind == "preempted"
    assert left_of(job) == []
