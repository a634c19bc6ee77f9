"""The machines of a pool as they are looked at, and taken in the place of each other."""

from __future__ import annotations

import contextlib
import json
import os
import signal

import pytest
from estimator_container.contract.events import ServiceStatus

from estimator_sdk import Estimator, Job, JobFailed, JobNotFound
from estimator_sdk.cli.main import main
from tests.conformance.jobs import tell
from tests.ssh import seen
from tests.waiting import SECONDS, kill_all, wait_for

MPI = {"mpi": {"enabled": True, "processes_per_host": 1}}
UP = """
import os, time
from mpi4py import MPI
print("up", MPI.COMM_WORLD.rank, os.uname().nodename, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


@pytest.fixture
def submit(tmp_path):
    """Start a script on machines of the pool; returns the job."""
    started = []

    def submitted(source: str, **arguments: object) -> Job:
        (tmp_path / "train.py").write_text(source)
        given = {"instance_count": 2, "distribution": MPI, "stop_timeout": 2, **arguments}
        started.append(Estimator(entry_point=str(tmp_path / "train.py"), **given).fit(wait=False))
        return started[-1]

    yield submitted
    for job in started:
        with contextlib.suppress(JobNotFound):
            job.stop()
            job._started.wait(SECONDS)


def wait_until_up(job: Job, count: int) -> list[str]:
    """Until so many lines have said so, over all attempts; returns them."""
    said = []
    for line in job.logs(stream="stdout", follow=True):
        said.append(line.data.decode().strip())
        if len(said) == count:
            return said
    raise AssertionError(f"the job ended after {said}: {job.why()}")


def on_machine(job: Job, machine: str) -> list[int]:
    """The processes of a job on a machine of the pool."""
    there = []
    for pid, _, _ in seen.processes(job):
        with contextlib.suppress(OSError):
            there += [pid] if seen.machine_of(pid) == machine else []
    return there


def test_a_rank_that_is_killed_is_followed_by_another_attempt_on_the_same_machines(submit):
    job = submit(UP, hosts=["host-1", "host-2"], restart_policy={"on": ["signal"], "max": 1})
    wait_until_up(job, 2)
    before = {host: pid for host, (pid, _) in seen.toolkits(job).items()}
    ranks = [pid for pid, words, _ in seen.processes(job) if b"/python3\0-u" in words]
    (rank,) = [pid for pid in ranks if seen.machine_of(pid) == "host-2"]
    os.kill(rank, signal.SIGKILL)
    said = wait_until_up(job, 4)
    assert sorted(said) == sorted(["up 0 host-1", "up 1 host-2"] * 2)
    assert {host: pid for host, (pid, _) in seen.toolkits(job).items()} == before
    assert len(job.log_files) == 4


def test_a_machine_that_is_lost_is_replaced_by_a_spare_one(submit, ssh_pool):
    job = submit(UP, hosts=["host-1", "host-3", "host-4"], spare_hosts=1, max_retry_attempts=1)
    assert sorted(wait_until_up(job, 2)) == ["up 0 host-1", "up 1 host-3"]
    kill_all(on_machine(job, "host-3"))
    said = wait_until_up(job, 4)
    assert sorted(said[2:]) == ["up 0 host-1", "up 1 host-4"]


def test_a_job_with_too_few_machines_left_waits_for_no_other_attempt(submit, ssh_pool):
    again = {"on": ["host_lost"], "max": 3, "backoff": 600}
    job = submit(UP, hosts=["host-1", "host-3"], restart_policy=again)
    wait_until_up(job, 2)
    kill_all(on_machine(job, "host-3"))
    why = "it is not tried again: too few machines are left, 1 of 2 without host-3; give the pool"
    with pytest.raises(JobFailed, match=why):
        job.wait(SECONDS)
    assert [attempt.verdict.kind for attempt in job.attempts] == ["host_lost"]


def test_what_the_machines_have_is_shown_in_a_table(ssh_pool, capsys):
    assert main(["pool", "check", "host-1,nobody@host-2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    head = ["MACHINE", "PYTHON", "MPI", "CLOCK", "CPUS", "MEMORY", "GPUS", "DISK", "PORTS", "ADDRESS"]
    assert lines[0].split() == head
    assert lines[1].split()[0] == "host-1" and "(lo)" in lines[1]
    assert "loopback" in lines[2]
    assert lines[3].split()[0] == "nobody@host-2" and "Permission denied" in lines[4]
    assert main(["pool", "check", "host-1", "--json"]) == 1
    (host,) = json.loads(capsys.readouterr().out)
    assert host["mpi"].startswith("4.1") and abs(host["clock"]) < 1


def test_a_job_is_adopted_by_whoever_has_ssh_to_its_first_machine(submit, tmp_path, monkeypatch, capsys):
    source = "import os\nopen(os.environ['SM_MODEL_DIR'] + '/weights', 'w').write('w')\nprint('trained')\n"
    job = submit(source, hosts=["host-1", "host-2"], distribution=None)
    assert job.wait(SECONDS) == "Completed", job.why()
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "another home"))
    with pytest.raises(JobNotFound):
        Job.attach(job.name)
    assert main(["pool", "adopt", "host-1", job.name]) == 0
    adopted = Job.attach(job.name)
    assert adopted.status == "Completed"
    assert [line.data for line in adopted.logs(stream="stdout")] == [b"trained\n"] * 2
    assert (adopted.download(tmp_path / "model") / "weights").read_text() == "w"
    assert main(["pool", "adopt", "host-1", "no-such-job"]) != 0
    assert "there is no job 'no-such-job' on host-1" in capsys.readouterr().err


HOLDS = """
import os, pathlib, time
print("up", flush=True)
while not pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "go").exists():
    time.sleep(0.05)
"""


class Told(Exception):
    """What a job that waits says of itself."""


def tell_of_waiting(host: str, event: object) -> None:
    if isinstance(event, ServiceStatus) and event.status == "pending":
        raise Told(event.message)


def test_jobs_share_slots_and_one_that_finds_none_is_refused_or_waits(submit):
    # On machines that no other test uses at the same time: see `tests.scheduling`.
    first = submit(HOLDS, hosts="host-10:2,host-11:2", distribution=None)
    wait_until_up(first, 2)
    beside = submit(HOLDS, hosts="host-11:2", instance_count=1, distribution=None)
    wait_until_up(beside, 1)
    refused = submit(HOLDS, hosts="host-11:2,host-9:2", distribution=None)
    with pytest.raises(JobFailed, match=rf"no room: host-11: of 2 slots {first.name} has 1, {beside.name} has 1, and"):
        refused.wait(SECONDS)
    wait_for(lambda: not list(seen.processes(refused)))  # its keepers hold a place until its supervisor has gone
    waits = submit("print('up', flush=True)", hosts="host-9:2,host-11:2", distribution=None, queue=True)
    with pytest.raises(Told, match=rf"host-11: of 2 slots {first.name} has 1, {beside.name} has 1, and"):
        list(waits._started.blocks(True, tell_of_waiting))
    assert waits.attempts == []
    tell(beside, "go")
    assert beside.wait(SECONDS) == "Completed"
    assert waits.wait(SECONDS) == "Completed"
    for host in first.hosts:
        tell(first, "go", host)
    assert first.wait(SECONDS) == "Completed"


def test_what_a_supervisor_that_was_killed_has_held_is_free(submit):
    first = submit(UP, hosts="host-5:1,host-6:1")
    wait_until_up(first, 2)
    waits = submit("print('up', flush=True)", hosts="host-6:1", instance_count=1, distribution=None, queue=True)
    os.kill(seen.supervisor(first), signal.SIGKILL)
    assert waits.wait(SECONDS) == "Completed"


def test_a_job_that_waits_is_stopped(submit):
    first = submit(UP, hosts="host-7:1,host-8:1")
    wait_until_up(first, 2)
    waits = submit(UP, hosts="host-8:1,host-9:1", queue=True)
    wait_for(lambda: waits.status == "InProgress" and (waits.folder / "waiting").exists())
    waits.stop()
    assert waits.wait(SECONDS) == "Stopped"
