"""E: how jobs end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from estimator_sdk import Job, JobFailed, list_jobs
from tests.chaos.leaks import Scan
from tests.chaos.playing import own_folders
from tests.conformance.jobs import (
    UP_AND_WAIT,
    assert_falls_silent,
    events,
    freeze_host,
    kill_host,
    left_by_client,
    left_of,
    supervisor_of,
    tell,
    wait_for,
    wait_until_up,
)
from tests.waiting import SECONDS, kill

WAIT_IN_MPI = """
from mpi4py import MPI
world = MPI.COMM_WORLD
{failure}
world.Barrier()
"""
FAIL_BOUND = 2.0  # seconds from a rank's failure to the end of the job on all hosts
MPI_LINGERS = 1.0  # seconds that Open MPI leaves the ranks alone after one has left it without a word


@pytest.mark.law("E1")
@pytest.mark.parametrize("processes", [None, 2])
def test_a_host_that_finishes_early_ends_no_other(script, out, processes):
    source = """
import os, time
if os.environ["SM_CURRENT_HOST"] == "algo-2":
    time.sleep(1.5)
print("finished")
"""
    job = script.run(source, hosts=2, processes=processes)
    assert job.status == "Completed"
    assert set(out(job, host="algo-2").splitlines()) == {b"finished"}


FAILURES = {
    "exit code": (1, "if world.rank == 1: import sys; sys.exit(7)", "exit_code", 7, None),
    "hard exit": (1, "if world.rank == 1: import os; os._exit(9)", "exit_code", 9, None),
    "exception": (3, "if world.rank == 3: raise ValueError('no such digit')", "exception", 1, None),
    "kill": (
        2,
        "if world.rank == 2: import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "signal",
        None,
        "SIGKILL",
    ),
    "segmentation fault": (
        0,
        "if world.rank == 0: import os; os.kill(os.getpid(), 11)",
        "signal",
        None,
        "SIGSEGV",
    ),
    "damaged heap": (
        1,
        "if world.rank == 1: import ctypes; c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; "
        "blocks = [c.malloc(100_000) for _ in range(3)]; ctypes.memset(blocks[2], 255, 100_064); "
        "[c.malloc(100_000) for _ in range(9)]",
        "signal",
        None,
        "SIGABRT",
    ),
    "abort": (3, "if world.rank == 3: world.Abort(5)", "exit_code", 5, None),
    "exit without a word": (1, "if world.rank == 1: import os; os._exit(0)", "early_exit", 0, None),
    "import error": (1, "if world.rank == 1: import no_such_module", "import_error", 1, None),
}


@pytest.mark.alone
@pytest.mark.law("E2")
@pytest.mark.parametrize("name", FAILURES)
def test_the_first_failing_rank_is_named(script, name, stretched):
    rank, failure, kind, code, signal_name = FAILURES[name]
    stamp = "import time; print('failing at', time.time(), flush=True)"
    condition, _, rest = failure.partition(": ")
    failed = script.fail(WAIT_IN_MPI.format(failure=f"{condition}: {stamp}; {rest}"), hosts=2, processes=2)
    ended = time.time()
    verdict = failed.verdict
    assert (verdict.rank, verdict.host) == (rank, f"algo-{rank // 2 + 1}")
    assert (verdict.kind, verdict.exit_code, verdict.signal) == (kind, code, signal_name)
    assert f"rank {rank} on algo-{rank // 2 + 1}" in str(failed)
    if signal_name in ("SIGSEGV", "SIGABRT"):
        assert "Fatal Python error" in verdict.detail and "train.py" in verdict.detail
    job = Job.attach(failed.job_name)
    assert job.status == "Failed" and job.why() in str(failed) + "\n"
    said = b"".join(line.data for line in job.logs(rank=rank, stream="stdout")).split()
    assert ended - float(said[2]) < stretched(FAIL_BOUND) + (MPI_LINGERS if kind == "early_exit" else 0.0)
    assert left_of(job) == []
    for host in ("algo-1", "algo-2"):
        failure_file = job.folder / "hosts" / host / "output" / "failure"
        assert f"rank {rank} on algo-{rank // 2 + 1}" in failure_file.read_text()


@pytest.mark.law("E2")
def test_the_traceback_is_in_the_error(script):
    source = """
from mpi4py import MPI
def inner():
    raise KeyError("the weights")
if MPI.COMM_WORLD.rank == 1:
    inner()
MPI.COMM_WORLD.Barrier()
"""
    failed = script.fail(source, processes=2)
    assert failed.verdict.detail.startswith("Traceback (most recent call last):")
    assert 'line 4, in inner\n    raise KeyError("the weights")' in failed.verdict.detail
    assert failed.verdict.detail.rstrip().endswith("KeyError: 'the weights'")
    assert "script_runner" not in failed.verdict.detail
    assert failed.verdict.victims == (0,)


@pytest.mark.alone
@pytest.mark.law("E2")
def test_a_failure_without_a_world_ends_the_other_hosts(script, stretched):
    source = """
import os, sys, time
if os.environ["SM_CURRENT_HOST"] == "algo-2":
    print("failing at", time.time(), flush=True)
    sys.exit("the disk is full")
time.sleep(600)
"""
    failed = script.fail(source, hosts=3)
    ended = time.time()
    assert (failed.verdict.host, failed.verdict.exit_code) == ("algo-2", 1)
    assert "the disk is full" in str(failed)
    said = b"".join(line.data for line in Job.attach(failed.job_name).logs(host="algo-2", stream="stdout")).split()
    assert ended - float(said[2]) < stretched(FAIL_BOUND)


@pytest.mark.alone
@pytest.mark.law("E2")
@pytest.mark.parametrize("host", ["algo-1", "algo-2"])
def test_a_host_that_is_killed_ends_the_job_by_name(script, host, stretched):
    job = script.estimator(UP_AND_WAIT, hosts=2, processes=1).fit(wait=False)
    wait_until_up(job, 2)
    kill_host(job, host)
    killed = time.time()
    with pytest.raises(JobFailed) as failed:
        job.wait(SECONDS)
    assert time.time() - killed < stretched(FAIL_BOUND)
    assert failed.value.verdict.kind == "host_lost"
    assert failed.value.verdict.host == host
    assert left_of(job) == []


@pytest.mark.alone
@pytest.mark.law("E2b")
@pytest.mark.parametrize(("hosts", "host"), [(2, "algo-1"), (2, "algo-2"), (3, "algo-3")])
def test_a_frozen_host_is_named_by_those_that_hear_nothing_of_it(script, hosts, host, stretched):
    job = script.estimator(UP_AND_WAIT, hosts=hosts, processes=1).fit(wait=False)
    wait_until_up(job, hosts)
    freeze_host(job, host)
    assert_falls_silent(job, host, stretched)


TAKES_LONG = {
    "train.py": "print('ran')",
    "requirements.txt": "./slow\n",
    "slow/pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'slow'\nbackend-path = ['.']\n",
    "slow/slow.py": "import time\ntime.sleep(600)\n",
}


@pytest.mark.law("E2b")
@pytest.mark.parametrize("host", ["algo-1", "algo-2"])
def test_a_host_that_freezes_while_it_prepares_is_named(script, host):
    job = script.estimator(TAKES_LONG, hosts=2).fit(wait=False)
    wait_for(lambda: job.attempts)
    for each in ("algo-1", "algo-2"):
        wait_for(lambda each=each: any(e["phase"] == "requirements" for e in events(job, "phase_started", each)))
    wait_for(lambda: events(job, "host_joined"))
    freeze_host(job, host)
    with pytest.raises(JobFailed) as failed:
        job.wait(SECONDS)
    verdict = failed.value.verdict
    assert (verdict.kind, verdict.host) == ("host_lost", host), verdict
    assert left_of(job) == []


@pytest.mark.law("E2")
def test_a_rank_that_is_stopped_and_not_continued_is_named(script):
    failure = "if world.rank == 2: import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    found = script.fail(WAIT_IN_MPI.format(failure=failure), hosts=2, processes=2).verdict
    assert (found.kind, found.rank, found.host, found.signal) == ("frozen", 2, "algo-2", "SIGSTOP")


@pytest.mark.law("E2")
def test_a_rank_that_ends_with_success_while_the_others_wait_for_it_is_named(script):
    source = WAIT_IN_MPI.format(failure="if world.rank == 1: import sys; sys.exit(0)")
    found = script.fail(source, hosts=2, processes=1, hang_timeout=4).verdict
    assert (found.kind, found.rank, found.host, found.victims) == ("early_exit", 1, "algo-2", (0,))
    assert 'File "train.py", line 5 in <module>' in found.detail


@pytest.mark.law("E2")
def test_of_ranks_that_wait_for_each_other_it_is_said_where_they_stand(script):
    source = WAIT_IN_MPI.format(failure="if world.rank == 3: world.recv(source=0)")
    found = script.fail(source, hosts=2, processes=2, hang_timeout=4).verdict
    assert (found.kind, found.rank, found.host) == ("deadlock", 3, "algo-2")
    assert 'ranks 0, 1 and 2, the innermost call first:\n  File "train.py", line 5' in found.detail
    assert 'rank 3, the innermost call first:\n  File "train.py", line 4' in found.detail


PROGRESS = {
    "output": "for n in range(9): time.sleep(0.5); print(n, flush=True)",
    "other lines": "for n in range(9):\n" + "    time.sleep(0.1)\n" * 5,
    "a program": "subprocess.run([sys.executable, '-c', 'import time\\nwhile time.process_time() < 3: pass'])",
}


@pytest.mark.law("E1")
@pytest.mark.parametrize("work", PROGRESS.values(), ids=PROGRESS.keys())
def test_ranks_that_get_somewhere_are_left_alone(script, work):
    source = WAIT_IN_MPI.format(failure=f"import subprocess, sys, time\nif world.rank == 1: exec({work!r})")
    assert script.run(source, processes=2, hang_timeout=2).status == "Completed"


@pytest.mark.law("E3")
@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)"])
def test_nothing_is_left_running(script, ending):
    source = f"""
import os, signal, subprocess, sys, time
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        time.sleep(600)
    os._exit(0)
{ending}
"""
    estimator = script.estimator(source, hosts=2, processes=1)
    with own_folders():
        scan = Scan(with_engine=False)
        job = estimator.fit(wait=False)
        try:
            job.wait(SECONDS)
        except JobFailed:
            assert ending
        assert left_of(job) == []
        assert scan.left(job.name, patience=SECONDS) == []


@pytest.mark.law("E3")
def test_nothing_is_left_when_the_supervisor_is_killed(script):
    source = """
import time
print("up", flush=True)
time.sleep(600)
"""
    job = script.estimator(source, hosts=2, processes=1).fit(wait=False)
    wait_until_up(job, 2)
    kill(supervisor_of(job))
    with pytest.raises(JobFailed, match="supervisor"):
        job.wait(SECONDS)  # Slurm is not asked more often than every ten seconds
    assert left_of(job) == []


@pytest.mark.law("E3")
def test_a_program_that_ends_with_fit_leaves_nothing(where, tmp_path):
    """Its end may be that of all processes, as in a container."""
    (tmp_path / "train.py").write_text("print('trained')")
    name = f"law-last-{where['backend']}"
    program = f"""
from estimator_sdk import Estimator
Estimator(entry_point={str(tmp_path / "train.py")!r}, instance_count=2, **{where!r}).fit(job_name={name!r})
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert left_by_client(Job.attach(name)) == []


@pytest.mark.law("E3")
def test_the_name_of_a_job_whose_folder_was_removed_is_free_at_once(script):
    estimator = script.estimator("print('trained')", hosts=2, processes=1)
    for _ in range(3):
        job = estimator.fit(job_name=f"law-again-{os.getpid()}", logs="none")
        assert job.status == "Completed"
        shutil.rmtree(job.folder)


GRACEFUL = """
import os, pathlib, signal, time
def last_words(signum, frame):
    os.write(1, b"told at %f\\n" % time.time())  # print could be in the middle of a line
    time.sleep(1.0)
    pathlib.Path(os.environ["SM_MODEL_DIR"], "final").write_text("saved")
    os.write(1, b"saved\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, last_words)
{mpi}
print("up", flush=True)
while True:
    time.sleep(0.01)
"""


@pytest.mark.alone
@pytest.mark.law("E4")
def test_stop_reaches_every_rank_and_honours_the_grace_period(script, out, tmp_path, stretched):
    source = GRACEFUL.format(mpi="from mpi4py import MPI")
    late = []
    for _ in range(10):  # a machine may have let one of many processes wait
        job = script.estimator(source, hosts=2, processes=2).fit(wait=False)
        wait_until_up(job, 4)
        asked = time.time()
        job.stop()
        assert job.wait(SECONDS) == "Stopped"
        words = [out(job, rank=rank).decode().split() for rank in range(4)]
        assert [(each[0], each[4]) for each in words] == [("up", "saved")] * 4
        late.append(max(float(each[3]) for each in words) - asked)
        if late[-1] < stretched(0.1):
            break
    assert late[-1] < stretched(0.1), late
    assert (job.download(tmp_path / "model") / "final").read_text() == "saved"
    assert "stopped by the user" in job.why()


@pytest.mark.law("E4")
def test_a_rank_that_dies_of_the_signal_does_not_cut_the_grace_of_the_others(script, out):
    source = GRACEFUL.format(
        mpi="from mpi4py import MPI\nif MPI.COMM_WORLD.rank: signal.signal(signal.SIGTERM, signal.SIG_DFL)"
    )
    job = script.estimator(source, hosts=2, processes=1).fit(wait=False)
    wait_until_up(job, 2)
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert out(job, rank=0).decode().split()[4] == "saved"


@pytest.mark.alone
@pytest.mark.law("E4")
def test_a_script_that_ignores_the_signal_is_killed_after_the_grace_period(script, stretched):
    source = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""
    job = script.estimator(source, hosts=2, processes=1, stop_timeout=1).fit(wait=False)
    wait_until_up(job, 2)
    asked = time.time()
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert 1.0 <= time.time() - asked < stretched(3.0)
    assert left_of(job) == []


@pytest.mark.law("E4")
def test_ctrl_c_in_fit_stops_the_job(where, tmp_path):
    (tmp_path / "train.py").write_text(GRACEFUL.format(mpi=""))
    client = f"""
from estimator_sdk import Estimator
Estimator(entry_point={str(tmp_path / "train.py")!r}, **{where!r},
          distribution={{"mpi": {{"enabled": True}}}}).fit(job_name="law-ctrl-c-{where["backend"]}")
"""
    with subprocess.Popen(
        [sys.executable, "-c", client], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as fitting:
        assert fitting.stdout is not None
        assert any(line == "[1,0]<stdout>:up\n" for line in fitting.stdout)
        fitting.send_signal(signal.SIGINT)
        shown, _ = fitting.communicate(timeout=SECONDS)
    assert "KeyboardInterrupt" in shown
    job = Job.attach(f"law-ctrl-c-{where['backend']}")
    assert job.status == "Stopped" and left_by_client(job) == []
    assert (job.download(tmp_path / "model") / "final").exists()


@pytest.mark.alone
@pytest.mark.law("E5")
def test_max_run_stops_the_job_and_says_so(script, stretched):
    job = script.estimator("import time; time.sleep(600)", max_run=1).fit(wait=False)
    started = time.time()
    assert job.wait(SECONDS) == "Stopped"
    assert time.time() - started < stretched(30.0)
    (attempt,) = job.attempts
    assert attempt.ended - attempt.began > 0.9
    assert "MaxRuntimeExceeded" in job.why()


@pytest.mark.alone
@pytest.mark.law("E4")
@pytest.mark.parametrize("hosts", [1, 2])
def test_a_job_that_is_stopped_while_it_starts_stops(script, hosts):
    started = time.monotonic()
    script.run("", hosts=hosts, processes=1)
    usual = time.monotonic() - started
    for part in (0.2, 0.4, 0.6, 0.8):
        job = script.estimator("import time; time.sleep(600)", hosts=hosts, processes=1).fit(wait=False)
        time.sleep(part * usual)
        job.stop()
        assert job.wait(SECONDS) == "Stopped"


@pytest.mark.law("E6")
def test_a_job_outlives_its_client(where, tmp_path):
    (tmp_path / "train.py").write_text("import time\nfor n in range(20): print(n); time.sleep(0.1)\n")
    client = f"""
from estimator_sdk import Estimator
Estimator(entry_point={str(tmp_path / "train.py")!r}, **{where!r}).fit(job_name="law-outlives-{where["backend"]}")
"""
    with subprocess.Popen([sys.executable, "-c", client], stdout=subprocess.PIPE) as fitting:
        assert fitting.stdout is not None
        assert any(b"<stdout>:1" in line for line in fitting.stdout)
        fitting.kill()
    job = Job.attach(f"law-outlives-{where['backend']}")
    assert [int(line.data) for line in job.logs(stream="stdout", follow=True)] == list(range(20))
    assert job.status == "Completed" and job.model_data is not None


WAITS = """
import sys
from estimator_sdk import Job
job = Job.attach(sys.argv[1])
lines = job.logs(stream="stdout", follow=True)
print(next(lines).data.decode().strip(), job.status, flush=True)
print(*(line.data.decode().strip() for line in lines), job.wait(0), len(job.attempts))
"""


@pytest.mark.turn("process")
@pytest.mark.law("E6")
def test_several_processes_wait_for_each_of_several_jobs(script):
    source = """
import os, time
print("up", flush=True)
while not os.path.exists(os.environ["SM_OUTPUT_DATA_DIR"] + "/go"):
    time.sleep(0.05)
print("ends")
"""
    jobs = [script.estimator(source).fit(wait=False) for _ in range(4)]
    waiting = [
        subprocess.Popen([sys.executable, "-c", WAITS, job.name], stdout=subprocess.PIPE, text=True)
        for job in jobs
        for _ in range(2)
    ]
    assert [each.stdout.readline() for each in waiting] == ["up InProgress\n"] * 8
    for job in jobs:
        tell(job, "go")
    assert [each.communicate(timeout=SECONDS)[0] for each in waiting] == ["ends Completed 1\n"] * 8
    assert {job.name for job in jobs} <= {job.name for job in list_jobs() if job.status == "Completed"}


@pytest.mark.alone
@pytest.mark.law("E7")
def test_without_wait_fit_returns_at_once(script, stretched):
    estimator = script.estimator("import time; time.sleep(1)", hosts=2, processes=1)
    for _ in range(10):  # the first may bring software to the machines, or pull an image
        started = time.time()
        job = estimator.fit(wait=False)
        took = time.time() - started
        assert job.status == "InProgress"
        assert job.wait(SECONDS) == "Completed"
        if took < stretched(0.5):
            break
    assert took < stretched(0.5)


@pytest.mark.law("E9")
def test_what_a_job_leaves_belongs_to_its_user(script):
    job = script.run("import os; open(os.path.join(os.environ['SM_MODEL_DIR'], 'weights'), 'w').close()")
    for path in [job.folder, *job.folder.rglob("*")]:
        status = path.lstat()
        assert status.st_uid == os.getuid()
        assert path.is_symlink() or not status.st_mode & 0o002, path


@pytest.mark.on_one_machine
@pytest.mark.law("E9")
def test_what_a_job_leaves_belongs_to_a_user_without_privileges(where, processes=2):
    """`fit()` is called by a user who may use the engine, and no more."""
    user = 4242
    call = f"""
import os
from estimator_sdk import Estimator
with open("train.py", "w") as script:
    script.write("import os; open(os.environ['SM_MODEL_DIR'] + '/weights', 'w').close(); print(os.getuid())")
mpi = {{"mpi": {{"enabled": True, "processes_per_host": {processes}}}}}
job = Estimator(entry_point="train.py", instance_count=2, distribution=mpi, **{where!r}).fit(logs="none")
print(job.status, {{line.data for line in job.logs(stream="stdout")}})
"""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, user, user)
        env = {**os.environ, "ESTIMATOR_HOME": f"{folder}/home", "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache"}
        argv = [*as_another_user(user, Path(folder, "hidden")), sys.executable, "-c", call]
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == f"Completed {{b'{user}\\n'}}"
        left = [path for path in Path(folder).rglob("*") if "jobs" in path.parts]
        assert any(path.name == "model.tar.gz" for path in left)
        for path in left:
            assert path.lstat().st_uid == user, path
            assert path.is_symlink() or not path.lstat().st_mode & 0o002, path


def as_another_user(user: int, stash: Path) -> list[str]:
    """A command that runs the command after it as that user, who may use the engine.

    The interpreter and the checkout may lie in folders that only root can enter: in a mount namespace of its own
    the command sees them at their places all the same.
    """
    places = {Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[2]}
    closed = {parent for place in places for parent in place.parents if not parent.stat().st_mode & 0o001}
    steps = ["set -e", f"mkdir {stash}"]
    for folder in {each for each in closed if not closed.intersection(each.parents)}:
        steps += [f"mount --rbind {folder} {stash}", f"mount -t tmpfs -o mode=755 tmpfs {folder}"]
        for place in (each for each in places if folder in each.parents):
            steps += [f"mkdir -p {place}", f"mount --rbind {stash / place.relative_to(folder)} {place}"]
    group = Path("/var/run/docker.sock").stat().st_gid
    steps.append(f'exec setpriv --reuid={user} --regid={user} --groups={group} "$@"')
    return ["unshare", "--mount", "sh", "-c", "\n".join(steps), "sh"]
