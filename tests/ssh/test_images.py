"""Jobs with an image on a pool: each machine's own Docker runs it, and has nothing left of a job that is over."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from estimator_sdk import Job, JobFailed
from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images import build, catalogue
from estimator_sdk.cli.main import main
from estimator_sdk.errors import BackendError
from tests.ssh import seen
from tests.ssh.machine_docker import MachineDocker, on_machine
from tests.ssh.pool import SshPool, pool
from tests.ssh.submitting import submitting
from tests.waiting import SECONDS, freeze, kill_all, wait_for

IMAGE = catalogue.MPI.name
BASE = b"SAGEMAKER_BASE_DIR="
EMPTY = "empty:1"
"""An image with nothing in it, which the first machine has."""
MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}
SUM = """
import os, pathlib
from mpi4py import MPI
world, host = MPI.COMM_WORLD, os.environ["SM_CURRENT_HOST"]
data = pathlib.Path(os.environ["SM_CHANNEL_TRAINING"], "data").read_text()
print(world.allreduce(world.rank), os.path.exists("/.dockerenv"), os.uname().nodename, os.getuid(), data)
pathlib.Path(os.environ["SM_MODEL_DIR"], host).write_text(host)
"""
UP = """
import time
from mpi4py import MPI
print("up", MPI.COMM_WORLD.rank, flush=True)
time.sleep(600)
"""
FAILS_ONCE = """
import os, pathlib, signal
from mpi4py import MPI
MPI.COMM_WORLD.barrier()
again = pathlib.Path("/tmp/again")  # of the container
if os.environ["SM_CURRENT_HOST"] == "algo-2" and not again.exists():
    again.touch()
    os.kill(os.getpid(), signal.SIGKILL)
MPI.COMM_WORLD.barrier()
"""


@pytest.fixture(scope="module")
def machines():
    """Four: two with Docker and the image, one without a daemon, one without the program."""
    build.ensure(engine.connect(), IMAGE, sys.stderr)
    with pool(4) as made:
        dockers = [MachineDocker(made, name) for name in made.names[:2]]
        try:
            with ThreadPoolExecutor(2) as threads:
                list(threads.map(MachineDocker.start, dockers))
                assert Path("/sys/class/net/docker0").exists()  # which a daemon without a network of its own removes
                list(threads.map(lambda each: each.load(IMAGE), dockers))
            dockers[0].make_empty(EMPTY)
            for program in subprocess.check_output(["which", "-a", "docker"], text=True).split():
                subprocess.run(on_machine(made, made.names[3], "mount", "--bind", "/dev/null", program), check=True)
            yield made, dockers
        finally:
            for each in dockers:
                each.stop()


@pytest.fixture
def used(machines, tmp_path, monkeypatch) -> SshPool:
    made, _ = machines
    monkeypatch.setenv("PATH", made.path)
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    return made


@pytest.fixture
def submit(used, tmp_path):
    """Start a script in the image on the first two machines; returns the job."""
    defaults = {"image_uri": IMAGE, "hosts": used.names[:2], "distribution": MPI}
    with submitting(tmp_path, **defaults) as submitted:
        yield submitted


@pytest.fixture
def containers(machines):
    """Says which there are, on all machines together."""
    return lambda: [name for each in machines[1] for name in each.containers()]


def wait_until_up(job: Job) -> None:
    said = []
    for line in job.logs(stream="stdout", follow=True):
        said.append(line.data)
        if len(said) == 4:
            return
    raise AssertionError(f"the job ended after {said}: {job.why()}")


def processes(pool: SshPool, job: Job, words: str) -> list[tuple[str, int]]:
    """The machine and the number of each process of a job's keepers that has such words."""
    each = [(name, pid, line) for name in pool.names for pid, line in pool.processes(name).items()]
    return [(name, pid) for name, pid, line in each if job.name in line and words in line]


def test_an_mpi_world_spans_containers_and_leaves_its_outputs_here(submit, containers, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "data").write_text("read")
    job = submit(SUM, inputs={"training": f"file://{tmp_path / 'folder'}"})
    assert job.wait(SECONDS) == "Completed", job.why()
    said = sorted(line.data.decode() for line in job.logs(stream="stdout"))
    assert said == sorted(f"6 True host-{number} {61000 + number} read\n" for number in (1, 1, 2, 2))
    assert [path.name for path in job.download(tmp_path / "model").iterdir()] == ["algo-1"]
    wait_for(lambda: not containers())


def test_what_a_host_inherits_is_in_no_command(submit, used, monkeypatch, tmp_path):
    monkeypatch.setenv("OF_MINE", "a secret")
    source = "import os, time\nprint(os.environ['OF_MINE'], flush=True)\ntime.sleep(600)"
    job = submit(source, distribution=None, inherit_environment=["OF_MINE"])
    said = islice(job.logs(stream="stdout", follow=True), 2)
    assert [line.data for line in said] == [b"a secret\n"] * 2
    lines = [line for name in used.names[:2] for line in used.processes(name).values()]
    assert any("docker run" in line for line in lines) and not any("a secret" in line for line in lines)


def test_a_rank_that_is_killed_is_followed_by_another_attempt_in_the_same_containers(submit, containers):
    job = submit(FAILS_ONCE, restart_policy={"on": ["signal"], "max": 1}, distribution={"mpi": {"enabled": True}})
    assert job.wait(SECONDS) == "Completed", job.why()
    assert len(job.attempts) == 2
    wait_for(lambda: not containers())


@pytest.mark.long
def test_what_requirements_name_is_installed_in_the_container(submit, tmp_path, used):
    source = tmp_path / "code"
    source.mkdir()
    (source / "requirements.txt").write_text("pip  # which is there already\n")
    (source / "train.py").write_text("import sys\nprint(sys.prefix)\n")
    job = submit("", source_dir=str(source), entry_point="train.py", distribution=None)
    assert job.wait(240) == "Completed", job.why()
    prefixes = {line.data.decode().strip() for line in job.logs(stream="stdout")}
    assert [prefix.startswith("/tmp/est-") for prefix in prefixes] == [True]
    assert not any((used.home(name) / ".cache/estimator-sdk/environments").exists() for name in used.names[:2])


def test_a_job_that_is_stopped_ends_its_containers(submit, containers):
    job = submit(UP, stop_timeout=1)
    wait_until_up(job)
    assert len(containers()) == 2
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    wait_for(lambda: not containers())


@pytest.mark.parametrize("who", ["backends/supervised", "ssh/on_host"])
def test_what_is_killed_with_all_that_could_tell_leaves_no_container(submit, used, containers, who):
    job = submit(UP)
    wait_until_up(job)
    kill_all(pid for _, pid in processes(used, job, who))
    with pytest.raises(JobFailed):
        job.wait(SECONDS)
    wait_for(lambda: not containers())


def test_a_container_that_stands_still_is_ended_with_its_supervisor(submit, used, machines, containers):
    job = submit(UP)
    wait_until_up(job)
    ((_, supervisor),) = processes(used, job, "backends/supervised")
    found = [(each, container) for each in machines[1] for container in each.containers()]
    in_containers = [(pid, words) for pid, words, variables in seen.processes(job) if BASE in variables]
    toolkits = seen.without_forks(pid for pid, words in in_containers if words.endswith(seen.TOOLKIT))
    assert len(toolkits) == len(found) == 2
    for pid in toolkits:  # at once, or one takes the other's silence for a loss, and ends
        os.kill(pid, signal.SIGSTOP)
    for each, container in found:
        freeze(functools.partial(each.ask, "pause", container))
    for pid in toolkits:
        os.kill(pid, signal.SIGCONT)
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not containers())


@pytest.mark.parametrize(
    ("host", "image", "words"),
    [
        ("host-1", "localhost:1/none:1", r"it does not have the image \S+, and cannot pull it: .*refused.*; build or"),
        ("host-1", EMPTY, f"the image {EMPTY} has no python3 on its PATH, which runs the toolkit; add"),
        ("host-3", IMAGE, "its user cannot use Docker: Cannot connect to the Docker daemon.*; start"),
        ("host-4", IMAGE, "there is no program docker on the PATH of its shell, which runs images; install"),
    ],
)
def test_what_a_machine_lacks_is_said_before_anything_is_started(submit, used, tmp_path, capsys, host, image, words):
    with pytest.raises(BackendError, match=f"{host}: {words}"):
        submit(SUM, hosts=[host], instance_count=1, image_uri=image)
    assert list((tmp_path / "home" / "ssh").iterdir()) == []
    assert main(["pool", "check", host, "--image", image]) == 1
    assert re.search(f"missing: {words}", capsys.readouterr().out)


def test_gpus_are_asked_of_docker_which_says_that_it_has_none(submit):
    with pytest.raises(BackendError, match=r"host-1: a container of the image .* does not run there: .*\bgpu\b"):
        submit(SUM, instance_type="local_gpu")
