"""Jobs on a pool of machines with ssh: from the first line to the last file, and what faults make of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from estimator_sdk import Estimator, Job, JobFailed
from estimator_sdk.backends.ssh import launch, mirror
from estimator_sdk.backends.ssh.backend import SshBackend
from estimator_sdk.backends.ssh.session import masters
from estimator_sdk.errors import BackendError, InvalidArgument, JobNotFound
from tests.ssh.submitting import submitting
from tests.waiting import SECONDS, kill_all, wait_for

MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}
WAITING = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
COUNTING = """
import os, time
for number in range(60):
    print(os.environ["SM_CURRENT_HOST"], number, flush=True)
    time.sleep(0.1)
"""
TALKING = """
import os, socket
host = os.environ["SM_CURRENT_HOST"]
print(host, socket.gethostname(), os.environ.get("WHO"))
open(os.path.join(os.environ["SM_MODEL_DIR"], host), "w").write(host)
open(os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], host), "w").write("x" * 3_000_000)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


@pytest.fixture
def submit(tmp_path, ssh_pool):
    """Start a script on the pool; returns the job."""
    with submitting(tmp_path, hosts=ssh_pool.names) as submitted:
        yield submitted


def lines(job: Job, **choice: object) -> list[str]:
    return [line.data.decode() for line in job.logs(stream="stdout", **choice)]


def wait_for_line(job: Job, start: str) -> None:
    for line in job.logs(stream="stdout", follow=True):
        if line.data.decode().startswith(start):
            return
    raise AssertionError(f"the job ended without saying {start!r}: {job.why()}")


def left(ssh_pool, job_name: str) -> list[str]:
    """The processes on any machine of the jobs whose names begin so."""
    return [words for name in ssh_pool.names for words in ssh_pool.processes(name).values() if job_name in words]


def wait_until_gone(ssh_pool, job: Job) -> None:
    wait_for(lambda: not left(ssh_pool, job.name), otherwise=lambda: left(ssh_pool, job.name))


@pytest.mark.parametrize("count", [1, 2])
def test_a_job_runs_on_its_machines_and_leaves_its_outputs_here(submit, ssh_pool, tmp_path, count):
    job = submit(TALKING, instance_count=count, environment={"WHO": "me"})
    assert job.wait(SECONDS) == "Completed", job.why()
    assert sorted(lines(job)) == [f"algo-{number} host-{number} me\n" for number in range(1, count + 1)]
    model = job.download(tmp_path / "model")
    assert sorted(path.name for path in model.iterdir()) == [f"algo-{number}" for number in range(1, count + 1)]
    assert (job.folder / "output" / "output.tar.gz").stat().st_size > 0
    wait_until_gone(ssh_pool, job)
    for name in ssh_pool.names[:count]:
        assert list((ssh_pool.home(name) / ".local/share/estimator-sdk/hosts").glob(f"{job.name}*")) == []


def test_an_mpi_world_spans_machines_of_different_users(submit):
    source = "from mpi4py import MPI\nworld = MPI.COMM_WORLD\nprint(world.allreduce(world.rank), world.size)\n"
    job = submit(source, distribution=MPI, instance_count=3)
    assert job.wait(SECONDS) == "Completed", job.why()
    assert lines(job) == ["15 6\n"] * 6


def test_the_log_has_every_byte_of_every_host(submit):
    source = "import os\nfor number in range(20000): print(os.environ['SM_CURRENT_HOST'], number, 'x' * 50)\n"
    job = submit(source)
    followed = [(line.host, line.data) for line in job.logs(stream="stdout", follow=True)]
    for host in ("algo-1", "algo-2"):
        expected = [f"{host} {number} {'x' * 50}\n".encode() for number in range(20000)]
        assert [data for name, data in followed if name == host] == expected
        assert [line.data for line in job.logs(stream="stdout", host=host)] == expected


def test_a_rank_that_fails_on_another_machine_is_the_verdict(submit, ssh_pool):
    source = """
import os, sys
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 3:
    raise ValueError("too large")
MPI.COMM_WORLD.barrier()
"""
    job = submit(source, distribution=MPI)
    with pytest.raises(JobFailed) as failed:
        job.wait(SECONDS)
    verdict = failed.value.verdict
    assert (verdict.kind.value, verdict.host, verdict.rank) == ("exception", "algo-2", 3)
    assert "ValueError: too large" in verdict.detail
    wait_until_gone(ssh_pool, job)


def test_what_a_host_has_left_that_cannot_be_read_is_named_and_costs_nothing_else(submit, ssh_pool):
    source = """
import os, pathlib
for name in ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR"):
    path = pathlib.Path(os.environ[name], os.environ["SM_CURRENT_HOST"])
    path.write_text("x")
    if path.name == "algo-2" and name == "SM_MODEL_DIR":
        path.chmod(0)
"""
    job = submit(source)
    with pytest.raises(
        JobFailed, match=r"algo-2 has left cannot all be read.*: model/algo-2: Permission denied"
    ) as failed:
        job.wait(SECONDS)
    assert (failed.value.verdict.kind.value, failed.value.verdict.host) == ("outputs", "algo-2")
    with tarfile.open(job.folder / "output" / "output.tar.gz") as archive:
        assert {"algo-1", "algo-2"} <= {name.rpartition("/")[2] for name in archive.getnames()}
    wait_until_gone(ssh_pool, job)


def test_a_job_is_stopped_and_nothing_of_it_is_left(submit, ssh_pool):
    job = submit(WAITING, distribution=MPI, stop_timeout=5)
    wait_for_line(job, "up")
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    wait_until_gone(ssh_pool, job)


def test_a_job_is_found_by_its_name_listed_and_deleted(submit, ssh_pool):
    job = submit(TALKING)
    assert job.wait(SECONDS) == "Completed", job.why()
    found = Job.attach(job.name)
    assert (found.status, found.backend) == ("Completed", "ssh")
    remote = ssh_pool.home("host-1") / ".local/share/estimator-sdk/jobs" / job.name
    assert remote.exists()
    found.delete()
    assert not remote.exists()
    with pytest.raises(JobNotFound):
        Job.attach(job.name)


def test_a_job_whose_news_cannot_be_copied_here_is_shown_as_it_was_and_can_be_stopped(submit):
    job = submit(COUNTING.replace("60", "6000"))
    wait_for_line(job, "algo-1 1")
    in_the_way = job.folder / "mirrored.json.new"
    in_the_way.mkdir()
    wait_for(lambda: "cannot be copied here" in job.started.record().reason)
    assert job.status == "InProgress"
    job.stop()
    in_the_way.rmdir()
    assert job.wait(SECONDS) == "Stopped"


@pytest.mark.parametrize("moment", ["keep", "close"])
def test_a_start_that_is_interrupted_is_known_or_leaves_nothing_running(submit, ssh_pool, monkeypatch, moment):
    """By a Ctrl-C while the keepers are told, or while the sessions are closed."""
    on_all = launch.on_all

    def interrupted(do, *given):
        told = on_all(do, *given)
        if do.__name__ == moment:
            raise KeyboardInterrupt
        return told

    monkeypatch.setattr(launch, "on_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        submit(WAITING, base_job_name="interrupted")
    wait_for(lambda: not left(ssh_pool, "interrupted"), otherwise=lambda: left(ssh_pool, "interrupted"))
    assert len(SshBackend().list()) == (moment == "close")


def test_another_client_that_stands_still_while_it_copies_is_named_and_holds_up_no_list(submit, monkeypatch):
    job = submit(WAITING)
    wait_for_line(job, "up")
    monkeypatch.setattr(mirror, "OTHER_SECONDS", 0.2)
    monkeypatch.setattr(mirror, "LIST_SECONDS", 0.2)
    with ThreadPoolExecutor() as threads, contextlib.ExitStack() as other, pytest.warns(UserWarning) as told:

        def is_told(words: str) -> bool:
            return any(re.search(words, str(each.message)) for each in told)

        held = os.open(job.folder, os.O_RDONLY)
        other.callback(os.close, held)
        fcntl.flock(held, fcntl.LOCK_EX)
        assert [each.summary().status for each in SshBackend().list()] == ["InProgress"]
        assert is_told("shown as it was last known: another client .* as after Ctrl-Z")
        asked = threads.submit(lambda: Job.attach(job.name).status)
        wait_for(lambda: is_told("or end it, for this one waits for it"))
        other.close()
        assert asked.result(SECONDS) == "InProgress"


@pytest.fixture
def connections(monkeypatch):
    """A folder for the sockets of connections that no other test uses."""
    with tempfile.TemporaryDirectory(prefix="cut-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield folder
        masters.close()


def cut(connections: str) -> int:
    """End every connection to every machine, as a laptop that is closed does; returns how many there were."""
    masters = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes()
            if words.startswith(f"ssh: {connections}/".encode()) and b"[mux]" in words:
                masters.append(int(process.name))
    kill_all(masters)
    return len(masters)


def test_a_job_outlives_the_program_that_started_it_and_every_connection(connections, submit):
    job = submit(COUNTING)
    wait_for_line(job, "algo-1 5")
    assert cut(connections) > 0
    assert job.wait(SECONDS) == "Completed", job.why()
    for host in ("algo-1", "algo-2"):
        assert lines(job, host=host) == [f"{host} {number}\n" for number in range(60)]


def test_a_machine_that_loses_its_power_is_named(submit, ssh_pool):
    job = submit(WAITING, distribution=MPI, hosts=["host-1", "host-12"])
    wait_for_line(job, "up")
    there = ssh_pool.processes("host-12").items()
    kill_all(pid for pid, words in there if job.name in words or "estimator_container" in words)
    with pytest.raises(JobFailed) as failed:
        job.wait(SECONDS)
    verdict = failed.value.verdict
    assert (verdict.kind.value, verdict.host) == ("host_lost", "algo-2")
    wait_until_gone(ssh_pool, job)


def test_a_supervisor_that_is_killed_leaves_nothing_on_any_machine(submit, ssh_pool):
    job = submit(WAITING, distribution=MPI)
    wait_for_line(job, "up")
    (supervisor,) = [
        pid
        for pid, words in ssh_pool.processes("host-1").items()
        if "backends/supervised" in words and f"/{job.name} " in words
    ]
    os.kill(supervisor, 9)
    with pytest.raises(JobFailed, match="ended without a result"):
        job.wait(SECONDS)
    wait_until_gone(ssh_pool, job)


def test_a_machine_that_asks_for_a_password_is_named_with_what_openssh_says(tmp_path, ssh_pool):
    (tmp_path / "train.py").write_text(TALKING)
    estimator = Estimator(
        entry_point=str(tmp_path / "train.py"), hosts=["host-1", "nobody@host-2"], instance_count=2, backend="ssh"
    )
    with pytest.raises(BackendError, match=r"nobody@host-2 cannot be reached by ssh: .*Permission denied"):
        estimator.fit()
    assert list(tmp_path.glob("home/ssh/*")) == []


def test_a_channel_of_this_machine_is_there_on_every_machine(submit, tmp_path):
    (tmp_path / "data" / "below").mkdir(parents=True)
    (tmp_path / "data" / "below" / "one").write_text("1")
    source = "import os\nprint(open(os.environ['SM_CHANNEL_TRAINING'] + '/below/one').read())\n"
    job = submit(source, inputs={"training": f"file://{tmp_path / 'data'}"})
    assert job.wait(SECONDS) == "Completed", job.why()
    assert lines(job) == ["1\n", "1\n"]


@pytest.mark.long
def test_what_requirements_name_is_kept_on_each_machine_for_the_next_job(submit, ssh_pool, tmp_path):
    source = tmp_path / "code"
    source.mkdir()
    (source / "requirements.txt").write_text("pip  # which is there already\n")
    (source / "train.py").write_text("import sys\nprint(sys.prefix)\n")
    kept = [ssh_pool.home(name) / ".cache/estimator-sdk/environments" for name in ssh_pool.names[:2]]
    made = []
    for _ in range(2):
        job = submit("", source_dir=str(source), entry_point="train.py")
        assert job.wait(SECONDS) == "Completed", job.why()
        assert [line.startswith("/tmp/est-") for line in lines(job)] == [True, True]
        made.append([[path.stat().st_ino for path in sorted(each.iterdir()) if path.is_dir()] for each in kept])
    assert made[0] == made[1] and all(made[0])


def test_outputs_are_where_they_are_asked_for(submit, tmp_path):
    job = submit(TALKING, output_path=f"file://{tmp_path / 'elsewhere'}")
    assert job.wait(SECONDS) == "Completed", job.why()
    assert job.model_data == f"file://{tmp_path / 'elsewhere'}/{job.name}/output/model.tar.gz"
    assert (tmp_path / "elsewhere" / job.name / "output" / "model.tar.gz").exists()


def test_more_ranks_than_slots_are_refused(tmp_path):
    (tmp_path / "train.py").write_text(TALKING)
    estimator = Estimator(entry_point=str(tmp_path / "train.py"), hosts="host-1:1", distribution=MPI)
    with pytest.raises(InvalidArgument, match="host-1 has 1 slots"):
        estimator.plan()


def test_the_command_line_runs_a_job_on_a_pool(ssh_pool, tmp_path):
    (tmp_path / "train.py").write_text(TALKING)
    command = ["estimator", "run", "--hosts", "host-1,host-2", "-d", "2", "--", "python", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "algo-2 host-2" in done.stdout
