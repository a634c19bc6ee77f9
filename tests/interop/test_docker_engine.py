"""What is particular to containers: what the engine shows of a job, and what it says when it cannot help."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import docker
import pytest

from estimator_sdk import BackendError, Estimator, InvalidArgument, JobFailed
from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.supervised.job import wait_until_gone
from tests.conformance.jobs import (
    UP_AND_WAIT,
    assert_falls_silent,
    container_of,
    drop_packets,
    left_of,
    tell,
    wait_until_up,
)
from tests.waiting import SECONDS, wait_for


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def estimator(tmp_path: Path, source: str, image_uri: str, **arguments: object) -> Estimator:
    script = tmp_path / "train.py"
    script.write_text(source)
    return Estimator(entry_point=script, image_uri=image_uri, **arguments)


def test_an_image_chooses_the_docker_backend(tmp_path, image):
    assert estimator(tmp_path, "", image).plan().backend == "docker"


def test_the_description_of_a_container_shows_no_variable_of_the_user(tmp_path, image):
    source = "import os, time; print(os.environ['PASSPHRASE'], flush=True); time.sleep(600)"
    job = estimator(tmp_path, source, image, environment={"PASSPHRASE": "open sesame"}).fit(wait=False)
    assert next(line.data for line in job.logs(stream="stdout", follow=True)) == b"open sesame\n"
    assert "open sesame" not in json.dumps(engine.connect().api.inspect_container(container_of(job).id))
    job.stop()
    job.wait(SECONDS)


def test_a_container_that_somebody_removes_fails_the_job_and_leaves_nothing(tmp_path, image):
    source = "import time; print('up', flush=True); time.sleep(600)"
    job = estimator(tmp_path, source, image, instance_count=2).fit(wait=False)
    next(job.logs(host="algo-2", stream="stdout", follow=True))
    container_of(job, "algo-2").remove(force=True)
    with pytest.raises(JobFailed) as failed:
        job.wait(SECONDS)
    assert failed.value.verdict.host == "algo-2"
    wait_until_gone()
    assert left_of(job) == []


UNTIL_TOLD = """
import os, time
from pathlib import Path
print("up", flush=True)
while not Path(os.environ["SM_OUTPUT_DATA_DIR"], "enough").exists():
    time.sleep(0.05)
"""


def test_a_job_ends_before_the_engine_has_taken_its_network_down(tmp_path, image):
    client = engine.connect()
    job = estimator(tmp_path, UNTIL_TOLD, image, instance_count=2).fit(wait=False)
    for host in ("algo-1", "algo-2"):
        next(job.logs(host=host, stream="stdout", follow=True))
    (network,) = client.networks.list(filters={"label": f"{engine.JOB_LABEL}={job.name}"})
    guest = client.containers.run(image, ["sleep", "infinity"], network=network.name, detach=True)
    try:
        for host in ("algo-1", "algo-2"):
            tell(job, "enough", host)
        assert job.wait(SECONDS) == "Completed"
        # The guest keeps the network, so the supervisor gives up on it, some time after the job has ended.
        log = job.folder / "supervisor.log"
        wait_for(lambda: b"could not be removed from the engine" in log.read_bytes())
        assert job.ended is not None and job.ended < log.stat().st_mtime
    finally:
        engine.remove_container(client.api, guest.id)
    assert left_of(job) == []


@pytest.fixture
def occupied(image):
    """A network of the engine, and a container on it that runs."""
    client = engine.connect()
    network = client.networks.create(f"occupied-{os.getpid()}", driver="bridge")
    container = client.containers.run(image, ["sleep", "infinity"], network=network.name, detach=True)
    yield client, network, container
    engine.remove_container(client.api, container.id)
    engine.remove_network(client.api, network.id)


def test_a_network_is_removed_when_its_last_container_has_left_it(occupied, monkeypatch):
    client, network, container = occupied
    monkeypatch.setattr(engine, "DETACH_SECONDS", SECONDS)
    leaving = threading.Timer(0.5, lambda: engine.remove_container(engine.connect().api, container.id))
    leaving.start()
    engine.remove_network(client.api, network.id)
    leaving.join()
    assert client.networks.list(ids=[network.id]) == []
    engine.remove_network(client.api, network.id)


def test_a_network_that_stays_occupied_is_told(occupied, monkeypatch):
    client, network, _ = occupied
    monkeypatch.setattr(engine, "DETACH_SECONDS", 0.1)
    with pytest.raises(docker.errors.APIError, match="active endpoints"):
        engine.remove_network(client.api, network.id)


@pytest.mark.alone
@pytest.mark.parametrize(
    ("hosts", "host"),
    [
        (2, "algo-1"),
        (3, "algo-3"),
        pytest.param(2, "algo-2", marks=pytest.mark.long),
        pytest.param(3, "algo-1", marks=pytest.mark.long),
    ],
)
def test_a_host_whose_packets_are_dropped_is_named_by_itself_or_the_others(tmp_path, image, hosts, host, stretched):
    mpi = {"mpi": {"enabled": True, "processes_per_host": 1}}
    job = estimator(tmp_path, UP_AND_WAIT, image, instance_count=hosts, distribution=mpi).fit(wait=False)
    wait_until_up(job, hosts)
    drop_packets(job, host)
    assert_falls_silent(job, host, stretched)


@pytest.mark.alone
def test_a_host_whose_network_is_taken_away_is_named(tmp_path, image, stretched):
    mpi = {"mpi": {"enabled": True, "processes_per_host": 1}}
    job = estimator(tmp_path, UP_AND_WAIT, image, instance_count=2, distribution=mpi).fit(wait=False)
    wait_until_up(job, 2)
    (network,) = engine.connect().networks.list(filters={"label": f"{engine.JOB_LABEL}={job.name}"})
    network.disconnect(container_of(job, "algo-2"))
    assert_falls_silent(job, "algo-2", stretched)


def test_two_jobs_at_once_do_not_see_each_other(tmp_path, image):
    source = """
import os, socket, time
from mpi4py import MPI
from pathlib import Path
world = MPI.COMM_WORLD
print(world.size, socket.gethostbyname("algo-1"), world.allreduce(1), flush=True)
while world.rank == 0 and not Path(os.environ["SM_OUTPUT_DATA_DIR"], "enough").exists():
    time.sleep(0.05)
world.Barrier()
"""
    mpi = {"mpi": {"enabled": True, "processes_per_host": 1}}
    jobs = [
        estimator(tmp_path, source, image, instance_count=count, distribution=mpi).fit(wait=False) for count in (2, 3)
    ]
    for job in jobs:
        next(job.logs(stream="stdout", follow=True))
    for job in jobs:
        tell(job, "enough")  # not before the other has its network, too
    for job in jobs:
        assert job.wait(SECONDS) == "Completed"
    said = [[line.data.decode().split() for line in job.logs(stream="stdout")] for job in jobs]
    assert [{(size, total) for size, _, total in lines} for lines in said] == [{("2", "2")}, {("3", "3")}]
    first, second = ({address for _, address, _ in lines} for lines in said)
    assert len(first) == len(second) == 1 and first != second


def test_a_missing_image_is_named_with_what_to_do(tmp_path):
    with pytest.raises(InvalidArgument, match=r"'no-such-image:1'.*docker pull no-such-image:1"):
        estimator(tmp_path, "", "no-such-image:1").fit()


def test_a_missing_engine_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere.sock")
    with pytest.raises(BackendError, match=r"no Docker engine answers.*backend='process'"):
        estimator(tmp_path, "", "any").fit()


def test_without_an_image_a_job_runs_in_the_plain_one(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("from mpi4py import MPI; print(MPI.COMM_WORLD.Get_size())")
    world = {"mpi": {"enabled": True, "processes_per_host": 2}}
    job = Estimator(entry_point=script, backend="docker", distribution=world).fit(logs="none")
    assert [line.data for line in job.logs(stream="stdout")] == [b"2\n", b"2\n"]
    assert job.request["AlgorithmSpecification"]["TrainingImage"] == "estimator/mpi:py311"


def test_a_container_shows_the_merged_view_to_whoever_runs_it_alone(tmp_path, image):
    """The image keeps the contract without us: `docker run IMAGE train` with the files that a platform writes."""
    base = tmp_path / "ml"
    (base / "input" / "config").mkdir(parents=True)
    (base / "code").mkdir()
    (base / "code" / "train.py").write_text("import sys; print('to', sys.argv[1:]); sys.exit(3)")
    config = base / "input" / "config"
    settings = {"sagemaker_program": "train.py", "who": '"you"', "sagemaker_mpi_enabled": "true"}
    (config / "hyperparameters.json").write_text(json.dumps(settings))
    (config / "resourceconfig.json").write_text(json.dumps({"current_host": "algo-1", "hosts": ["algo-1"]}))
    (config / "inputdataconfig.json").write_text("{}")
    run = ["docker", "run", "--rm", "--hostname", "algo-1", "-v", f"{base}:/opt/ml", image, "train"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[1,0]<stdout>:to ['--who', 'you']\n", 1)
    assert (base / "output" / "failure").read_text().startswith("rank 0 on algo-1 exited with code 3")
