"""What Slurm does to a job of ours, and what becomes of it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from estimator_sdk import Estimator, Job, JobFailed, TrainingInput, list_jobs
from estimator_sdk.backends.slurm import queue, waiting_line
from estimator_sdk.backends.slurm.queue import OVER
from estimator_sdk.errors import BackendError, InvalidArgument
from tests.conformance.jobs import processes_of
from tests.waiting import SECONDS, kill, wait_for

from .cluster import Cluster
from .conftest import SILENCE

COUNTING = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
signals = []
signal.signal(signal.SIGTERM, lambda *_: signals.append(1))
found = sorted(int(each.name) for each in folder.iterdir() if each.name.isdigit())
print("begins at", found[-1] if found else 0, flush=True)
if found:
    sys.exit()
for step in range(1, 1000):
    if os.environ.get("RANK", "0") == "0":
        (folder / "new").write_text("x")
        (folder / "new").rename(folder / str(step))
    time.sleep(0.1)
    if signals:
        time.sleep(0.5)
        print("saved", step, "after", len(signals), "signals", flush=True)
        sys.exit(143)
"""
MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}
SILENT = """#!/bin/sh
case "$*" in *"show job"*) echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1 ;; esac
exec {scontrol} "$@"
"""
WAITING = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(queue, "ASK_AGAIN_SECONDS", 1.0)


@pytest.fixture
def submit(tmp_path, slurm):
    """Start a script on the cluster; returns the job."""
    started = []

    def submitted(source: str, **arguments: object) -> Job:
        (tmp_path / "train.py").write_text(source)
        inputs = arguments.pop("inputs", None)
        given = {"instance_type": "slurm", "instance_count": 2, **arguments}
        estimator = Estimator(entry_point=str(tmp_path / "train.py"), **given)
        started.append(estimator.fit(inputs, wait=False))
        return started[-1]

    yield submitted
    for job in started:
        if job.status not in ("Completed", "Failed", "Stopped"):
            slurm.run("scancel", str(number_of(job)))


def number_of(job: Job) -> int:
    return job._started.folder.read_number()


def wait_for_line(job: Job, start: str, hosts: int = 1) -> None:
    """Until a line of so many hosts starts like that."""
    heard = set()
    for line in job.logs(stream="stdout", follow=True):
        heard |= {line.host} if line.data.decode().startswith(start) else set()
        if len(heard) == hosts:
            return
    raise AssertionError(f"the job ended without saying {start!r}: {job.why()}")


def wait_until_published(job: Job) -> None:
    def is_told() -> bool:
        told = []
        list(job._started.blocks(False, lambda host, event: told.append(event)))
        return any(event.name == "checkpoint_published" for event in told)

    wait_for(is_told, otherwise="no snapshot was published")


def wait_until_it_is(slurm: Cluster, number: int, *states: str) -> None:
    """Until Slurm says one of these of a job in the queue; nothing of one that has left it."""
    query = ("squeue", "-h", "-j", str(number), "-o", "%T")
    wait_for(lambda: slurm.run(*query).strip() in states, otherwise=lambda: slurm.run("squeue"))


def end_requeued(slurm: Cluster, number: int) -> None:
    """Wait until a job that was put back in the queue runs again, or did: what let it start first has to expire."""
    wait_until_it_is(slurm, number, "RUNNING", "")


def test_another_cluster_with_the_same_home_ends_nothing_of_this_one(submit, slurm):
    """It would take the job for one of its own with the same number, or for one that it has forgotten."""
    job = submit(WAITING)
    wait_for_line(job, "up", hosts=2)
    folder, number = job._started.folder, number_of(job)
    its = folder.read_cluster()
    assert f"ClusterName={its}\n" in (slurm.folder / "slurm.conf").read_text()
    folder.write_number(number, "other")
    assert job.status == "InProgress"
    assert "submitted on cluster other, and only that can say" in Job.attach(job.name).why()
    with pytest.raises(BackendError, match="stop it on a machine of that cluster"):
        job.stop()
    assert slurm.run("squeue", "-h", "-j", str(number), "-o", "%T").strip() == "RUNNING"
    folder.write_number(number, its)
    job.stop()
    assert job.wait(timeout=SECONDS) == "Stopped"


@pytest.mark.law("R6")
@pytest.mark.parametrize("distribution", [None, MPI], ids=["alone", "mpi"])
def test_a_job_that_is_requeued_goes_on_from_its_checkpoint(submit, slurm, tmp_path, distribution):
    store = tmp_path / "checkpoints"
    job = submit(COUNTING, checkpoint_s3_uri=f"file://{store}", distribution=distribution)
    wait_for_line(job, "begins at 0")
    wait_until_published(job)
    slurm.run("scontrol", "requeue", str(number_of(job)))
    end_requeued(slurm, number_of(job))
    assert job.wait(timeout=180) == "Completed", job.why()
    said = [line.data.decode() for line in job.logs(stream="stdout")]
    assert any(line.startswith("saved") for line in said), said
    assert all("after 1 signals" in line for line in said if line.startswith("saved")), said
    # A rank that starts late may find what the first one of its host has just written.
    ranks = 4 if distribution else 2
    assert sum(line.startswith("begins at ") and line != "begins at 0\n" for line in said) >= ranks, said
    attempts = job._started.record().attempts
    assert [attempt.verdict.kind.value if attempt.verdict else None for attempt in attempts] == ["preempted", None]


def test_a_job_that_is_requeued_while_the_controller_answers_nobody_goes_on(submit, slurm, tmp_path, monkeypatch):
    (silent := tmp_path / "bin").mkdir()
    (silent / "scontrol").write_text(SILENT.format(scontrol=shutil.which("scontrol")))
    (silent / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{silent}:{os.environ['PATH']}")
    job = submit(COUNTING, checkpoint_s3_uri=f"file://{tmp_path / 'checkpoints'}")
    wait_for_line(job, "begins at 0")
    wait_until_published(job)
    slurm.run("scontrol", "requeue", str(number_of(job)))
    end_requeued(slurm, number_of(job))
    assert job.wait(timeout=180) == "Completed", job.why()
    first, _ = job._started.record().attempts
    assert first.verdict.kind.value == "preempted"


def test_a_controller_that_does_not_answer_speaks_against_no_node(submit, srun_that_fails):
    srun_that_fails("algo-2", 2, f"Unable to confirm allocation for job 1: {SILENCE}")
    job = submit("pass", distribution=MPI)
    assert job.wait(timeout=120) == "Completed", job.why()
    record = job._started.record()
    assert (len(record.attempts), job._started.folder.read_start()) == (1, 0)


def test_a_host_that_waits_to_be_launched_again_is_stopped_with_its_job(submit, slurm, srun_that_fails):
    starts = srun_that_fails("algo-2", 1000, f"Unable to create step for job 1: {SILENCE}")
    job = submit(WAITING)
    wait_for(lambda: starts() > 1)
    job.stop()
    assert job.wait(timeout=SECONDS) == "Stopped"
    wait_for(lambda: not processes_of(job.folder))


def test_a_step_that_slurm_never_makes_fails_the_job_with_its_words_and_excludes_no_node(submit, srun_that_fails):
    srun_that_fails("algo-2", 1000, "Unable to create step for job 1: Memory required by task is not available")
    job = submit(WAITING)
    with pytest.raises(JobFailed) as failed:
        job.wait(timeout=120)
    verdict = failed.value.verdict
    assert (verdict.kind.value, verdict.host) == ("platform", "algo-2")
    assert "Slurm does not start algo-2 on" in verdict.message
    assert "Memory required by task is not available" in verdict.message
    assert job._started.folder.read_start() == 0


def test_a_job_that_is_cancelled_by_slurm_is_stopped(submit, slurm):
    job = submit(WAITING)
    wait_for_line(job, "up")
    slurm.run("scancel", str(number_of(job)))
    assert job.wait(timeout=SECONDS) == "Stopped"
    assert "cancelled" in job._started.record().reason
    wait_for(lambda: not processes_of(job.folder))


def test_a_job_that_is_stopped_has_its_own_grace(submit, slurm):
    job = submit(COUNTING.replace("sleep(0.5)", "sleep(13)"))  # longer than KillWait
    wait_for_line(job, "begins", hosts=2)
    job.stop()
    assert job.wait(timeout=SECONDS) == "Stopped"
    assert job._started.record().reason == "stopped by the user"
    said = [line.data.decode() for line in job.logs(stream="stdout")]
    assert sum("after 1 signals" in line for line in said) == 2, said


def test_a_job_in_the_queue_can_be_stopped(submit, slurm):
    job = submit(WAITING, slurm={"sbatch_options": {"begin": "now+1hour"}})
    assert job.status == "InProgress"
    job.stop()
    assert job.wait(timeout=SECONDS) == "Stopped"
    assert slurm.run("squeue", "-h", "-j", str(number_of(job)), "-t", "PD,R", "-o", "%i") == ""


def test_hosts_that_share_a_node_are_one_world_and_have_a_share_of_its_gpus_each(submit, slurm):
    source = """
import os
from mpi4py import MPI
total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank)
words = [os.environ[name] for name in ("SM_CURRENT_HOST", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES", "SM_NUM_GPUS")]
print(*words, total, flush=True)
"""
    job = submit(
        source,
        instance_count=3,
        distribution=MPI,
        slurm={"hosts_per_node": 2},
        environment={"CUDA_VISIBLE_DEVICES": "3,4,6,7"},
    )
    assert job.wait(timeout=SECONDS) == "Completed", job.why()
    said = {line.data.decode() for line in job.logs(stream="stdout")}
    hosts = {line.split()[0]: line.split()[1:] for line in said}
    nodes = [hosts[f"algo-{number}"][0] for number in (1, 2, 3)]
    assert nodes[0] == nodes[1] != nodes[2]
    assert [hosts[f"algo-{number}"][1:] for number in (1, 2, 3)] == [
        [each, "2", "15"] for each in ("3,4", "6,7", "3,4")
    ]
    assert "NumNodes=2 " in slurm.run("scontrol", "--oneliner", "show", "job", str(number_of(job)))


def test_a_partition_that_allows_less_than_the_default_gives_a_job_less_time(submit, slurm):
    job = submit("print(1)", instance_type="slurm.short", instance_count=1)
    assert job.wait(timeout=SECONDS) == "Completed"
    planned = (job.folder / "plan.txt").read_text()
    assert "limits        960 s to run, 120 s to stop" in planned
    assert "# max_run is 960 s, because partition short allows a job 1200 s" in planned
    assert "TimeLimit=00:20:00" in slurm.run("scontrol", "show", "job", str(number_of(job)))


def test_more_time_than_a_partition_allows_is_refused_with_what_it_allows(submit):
    with pytest.raises(InvalidArgument, match="partition 'short' allows a job 1200 s; ask for at most 960, or name"):
        submit("print(1)", instance_type="slurm.short", max_run=1100)
    assert list_jobs() == []


def test_a_job_that_was_put_back_in_the_queue_can_be_stopped_there(submit, slurm):
    job = submit(WAITING)
    wait_for_line(job, "up")
    slurm.run("scontrol", "requeuehold", str(number_of(job)))
    wait_until_it_is(slurm, number_of(job), "PENDING")
    job.stop()
    assert job.wait(timeout=SECONDS) == "Stopped"
    assert slurm.run("squeue", "-h", "-j", str(number_of(job)), "-o", "%i") == ""


def test_a_job_that_is_stopped_while_slurm_puts_it_back_in_the_queue_does_not_wait_there(submit, slurm):
    job = submit(WAITING)
    wait_for_line(job, "up")
    slurm.run("scontrol", "requeuehold", str(number_of(job)))
    job.stop()
    assert job.wait(timeout=SECONDS) == "Stopped"
    assert job._started.record().reason == "stopped by the user"
    assert slurm.run("squeue", "-h", "-j", str(number_of(job)), "-t", "PD,R", "-o", "%i") == ""


def test_who_follows_a_job_in_the_queue_is_told_why_it_waits(submit):
    job, told = submit("print('hi')", slurm={"sbatch_options": {"begin": "now+1hour"}}), []

    def tell(host: str, event: object) -> None:
        told.append((host, event.status, event.message.partition(",")[0]))
        job.stop()

    assert list(job._started.blocks(True, tell)) == []
    assert told[0] == ("", "pending", "BeginTime")
    assert job.wait() == "Stopped"


@pytest.fixture
def narrow(slurm):
    """A partition of one node, in which three jobs are before any other; the last one of the list that others see."""
    slurm.run("scontrol", "create", "PartitionName=tight", "Nodes=n12")
    options = ["--parsable", "--partition=tight", "--exclusive", "--output=/dev/null", "--wrap=sleep 600"]
    jobs = [slurm.run("sbatch", *options).strip() for _ in range(3)]
    yield
    slurm.run("scancel", *jobs)
    wait_for(lambda: not slurm.run("squeue", "-h", "-p", "tight", "-o", "%i"))
    slurm.run("scontrol", "delete", "PartitionName=tight")


IN_LINE = re.compile(r"(Priority|Resources), [23] ahead")


def test_who_waits_is_told_how_many_are_ahead_without_another_query(submit, narrow, monkeypatch):
    asked, ask = [], queue.ask
    monkeypatch.setattr(queue, "ask", lambda *command, **rest: asked.append(command[0]) or ask(*command, **rest))
    monkeypatch.setattr(waiting_line, "LOOK_AGAIN_SECONDS", 2.0)
    job, began, said = submit("print('hi')", instance_type="slurm.tight", instance_count=1), time.monotonic(), []
    too_late = threading.Timer(SECONDS, job.stop)
    too_late.start()

    def told(host: str, event: object) -> None:
        said.append(getattr(event, "message", ""))
        if IN_LINE.match(said[-1]):
            job.stop()

    try:
        list(job._started.blocks(True, told))
    finally:
        too_late.cancel()
    assert any(IN_LINE.match(each) for each in said), said
    assert asked.count("squeue") <= 4 + (time.monotonic() - began) / queue.ASK_AGAIN_SECONDS


def test_a_job_whose_supervisor_is_killed_has_failed(submit, slurm):
    job = submit(WAITING)
    wait_for_line(job, "up")
    kill(job._started.record().supervisor.pid)
    with pytest.raises(JobFailed, match="ended without a result"):
        job.wait(timeout=SECONDS)


def state_of(job: Job, slurm: Cluster) -> str:
    """Slurm's, once it has done with the job."""
    states = []

    def has_done() -> bool:
        query = ("squeue", "-h", "-t", "all", "-j", str(number_of(job)), "-o", "%T")
        states.append(slurm.run(*query).strip())
        return states[-1] in OVER

    wait_for(has_done, otherwise=lambda: states[-1])
    return states[-1]


@pytest.mark.parametrize(("source", "state"), [("print(1)", "COMPLETED"), ("raise ValueError", "FAILED")])
def test_jobs_that_depend_on_one_of_ours_see_how_it_ended(submit, slurm, source, state):
    job = submit(source, instance_count=1)
    assert state_of(job, slurm) == state


def test_a_job_that_is_requeued_after_its_end_stays_as_it_was(submit, slurm):
    job = submit("print(1)", instance_count=1)
    assert job.wait(timeout=SECONDS) == "Completed"
    state_of(job, slurm)
    slurm.run("scontrol", "requeue", str(number_of(job)))
    assert state_of(job, slurm) == "COMPLETED"
    assert (job.status, (job.folder / "supervisor.log").read_text()) == ("Completed", "")


@pytest.mark.long  # Slurm looks at limits once a minute
def test_slurms_time_limit_stops_a_job(submit, slurm):
    job = submit(WAITING)
    wait_for_line(job, "up")
    slurm.run("scontrol", "update", f"JobId={number_of(job)}", "TimeLimit=00:00:01")
    assert job.wait(timeout=120) == "Stopped"
    assert "time limit" in job._started.record().reason


def test_a_job_starts_after_another_has_completed(submit):
    first = submit("import time\ntime.sleep(2)\nprint('first')")
    second = submit("print('second')", slurm={"after": first.name})
    assert second.wait(timeout=180) == "Completed"
    began = second._started.record().attempts[0].began
    assert first.status == "Completed" and began > first._started.record().ended
    assert submit("print('third')", slurm={"after": first.name}).wait(timeout=SECONDS) == "Completed"


def test_a_job_after_one_that_fails_never_starts(submit, tmp_path):
    go_on = tmp_path / "go on"
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.1)\n"
    first = submit(f"{waits}raise SystemExit(1)")
    second = submit("print('second')", slurm={"after": first.name})
    go_on.touch()
    assert second.wait(timeout=SECONDS) == "Stopped"
    with pytest.raises(InvalidArgument, match="which is Failed, so this job would never start"):
        submit("print('third')", slurm={"after": first.name})


def test_the_script_that_plan_shows_is_the_one_that_is_submitted(submit, slurm, tmp_path):
    (tmp_path / "train.py").write_text("print(1)")
    estimator = Estimator(entry_point=str(tmp_path / "train.py"), instance_type="slurm.other")
    planned = estimator.plan(job_name="shown")
    estimator.fit(job_name="shown")
    number = number_of(Job.attach("shown"))
    kept = tmp_path / "kept"
    slurm.run("scontrol", "write", "batch_script", str(number), str(kept))
    assert kept.read_text().rstrip("\0") == planned.script
    assert "#SBATCH --partition=other" in planned.script


@pytest.mark.parametrize("name", ["#é", "a b, 100%job, it's"])
def test_a_home_may_have_any_name_that_sbatch_can_be_told(submit, tmp_path, monkeypatch, name):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / name))
    assert submit("print(1)", instance_count=1).wait(timeout=SECONDS) == "Completed"


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb"])
def test_a_home_that_sbatch_cannot_be_told_is_refused(submit, tmp_path, monkeypatch, name):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / name))
    with pytest.raises(BackendError, match="no line of a batch script can hold that path; set ESTIMATOR_HOME"):
        submit("print(1)")


def test_a_controller_that_does_not_answer_is_no_failure(submit, slurm, monkeypatch):
    job = submit(WAITING)
    wait_for_line(job, "up")
    with monkeypatch.context() as without:
        without.setattr(queue, "look", lambda age=None: None)
        assert job.status == "InProgress"
    job.stop()
    assert job.wait(timeout=SECONDS) == "Stopped"


def test_what_a_shell_sets_for_people_who_look_at_the_queue_says_nothing_of_jobs(submit, monkeypatch):
    job = submit(WAITING)
    wait_for_line(job, "up")
    for name in ("SQUEUE_PARTITION", "SCANCEL_PARTITION"):
        monkeypatch.setenv(name, "other")
    monkeypatch.setenv("SQUEUE_STATES", "PENDING")
    assert number_of(job) in queue.look(0.0)
    job.stop()
    assert job.wait(timeout=SECONDS) == "Stopped"


def test_without_slurm_a_job_is_refused_in_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("print(1)")
    estimator = Estimator(entry_point=str(tmp_path / "train.py"), instance_type="slurm")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    with pytest.raises(BackendError, match="sbatch is not on PATH, so this machine is no login node"):
        estimator.fit()
    assert list_jobs() == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"slurm": {"partitoin": "x"}}, "did you mean 'partition'"),
        ({"slurm": {"partition": "a b`c"}}, "a character that no line of a batch script can hold"),
        ({"slurm": {"sbatch_options": {"time": "1"}}}, "is set by the backend itself"),
        ({"slurm": {"sbatch_options": {"arra": "0-2"}}}, "is set by the backend itself"),
        ({"slurm": {"sbatch_options": {"account": "x"}}}, r"write slurm=\{'account': …\}"),
        ({"slurm": {"after": "nobody"}}, "there is no such job"),
        ({"slurm": {"qos": "low"}, "instance_type": "local"}, "this one runs on backend 'process'"),
        ({"slurm": {"partition": "x"}, "instance_type": "slurm.y"}, "names another one"),
        ({"instance_type": "slurm.debug\ntouch x"}, "names no partition that a cluster can have"),
        ({"instance_type": "slurm."}, "names no partition"),
        ({"inputs": {"train": TrainingInput("s3://b/k", input_mode="Pipe")}}, "use input_mode 'File'"),
        ({"slurm": {"container_mounts": ["/x"]}}, "is for jobs with an image"),
        ({"instance_type": "slrum"}, "did you mean 'slurm'"),
    ],
)
def test_wrong_input_is_named(submit, arguments, words):
    with pytest.raises(InvalidArgument, match=words):
        submit("print(1)", **arguments)
    assert list_jobs() == []
