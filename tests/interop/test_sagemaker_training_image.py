"""An image of somebody else's, made of the PyPI package sagemaker-training 5.1.4: its own `train`, sshd and mpirun.

What such an image needs of its platform, the Docker backend gives. The package sleeps for 30 seconds at the end of an
MPI job that went well, so those jobs run at the same time.
"""

from __future__ import annotations

import json
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from estimator_sdk import Estimator, InvalidArgument, Job, JobFailed
from tests.conformance.jobs import left_of
from tests.interop.another_user import another_user
from tests.waiting import SECONDS

HYPERPARAMETERS = {
    "b": True,
    "da-sh": [1, "two", None],
    "dict": {"k": "v", "a": 1},
    "empty": "",
    "lr": 0.5,
    "none": None,
    "number": "1e3",
    "text": 'it\'s "quoted" $(id) & 馬\n',
}
ENVIRONMENT = {"COLOUR": "blue", "LINES_OF": "one\ntwo = 'three'"}

REPORT = """
import json, os, pathlib, sys
channel = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"])
pathlib.Path(os.environ["SM_MODEL_DIR"], "weights").write_text("trained")
pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "scores").write_text("0.9")
print(json.dumps({
    "arguments": sys.argv[1:],
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "data": {each.name: each.read_text() for each in channel.iterdir()},
    "configuration": sorted(each.name for each in pathlib.Path(os.environ["SM_INPUT_CONFIG_DIR"]).iterdir()),
}))
"""

# The package looks for Open MPI's daemon once a second, for 20 minutes if the daemon is faster than that.
WORLD = """
import json, os, pathlib, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
time.sleep(10)
local = world.Split_type(MPI.COMM_TYPE_SHARED)
if local.rank == 0:
    pathlib.Path(os.environ["SM_MODEL_DIR"], f"weights-{MPI.Get_processor_name()}").write_text("trained")
# Not printed: the package's mpirun tears lines of more than 4 KiB.
pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], f"rank-{world.rank}").write_text(json.dumps({
    "rank": world.rank,
    "size": world.size,
    "sum": world.allreduce(world.rank),
    "host": MPI.Get_processor_name(),
    "local": [local.rank, local.size],
    "arguments": sys.argv[1:],
    "variables": {name: value for name, value in os.environ.items() if name.startswith("SM_")},
    "colour": os.environ["COLOUR"],
}))
print("rank", world.rank, "is done", flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees the jobs of the user, and the caller of all of them is in the same region."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTIMATOR_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("AWS_REGION", "eu-west-1")
        yield


def estimator(folder: Path, source: str, image_uri: str, processes: int | None = None, **arguments: Any) -> Estimator:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(source)
    if processes is not None:
        arguments["distribution"] = {"mpi": {"enabled": True, "processes_per_host": processes}}
    return Estimator(entry_point=folder / "train.py", image_uri=image_uri, **arguments)


def ranks_of(job: Job) -> list[dict[str, Any]]:
    """What the ranks left in their hosts' folders, in the order of hosts."""
    return [json.loads(path.read_text()) for path in sorted(job.folder.glob("hosts/*/output/data/rank-*"))]


def text(job: Job, **choice: str) -> str:
    return b"".join(line.data for line in job.logs(**choice)).decode()


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return sorted(tar.getnames())


@pytest.fixture(scope="module")
def worlds(their_image: str, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Job]:
    """MPI jobs on one host and on two, by the number of hosts."""
    folder = tmp_path_factory.mktemp("worlds")
    settings: Mapping[str, Any] = {"hyperparameters": HYPERPARAMETERS, "environment": ENVIRONMENT, "processes": 2}
    jobs = {
        hosts: estimator(folder, WORLD, their_image, instance_count=hosts, **settings).fit(wait=False)
        for hosts in (1, 2)
    }
    for job in jobs.values():
        assert job.wait(2 * SECONDS) == "Completed"
    return jobs


def test_the_script_sees_what_it_sees_in_our_image(tmp_path, their_image, image):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.csv").write_text("1,2\n")
    seen = []
    for each in (their_image, image):
        chosen = estimator(tmp_path, REPORT, each, hyperparameters=HYPERPARAMETERS, environment=ENVIRONMENT)
        job = chosen.fit({"train": f"file://{tmp_path / 'data'}"}, logs="none")
        assert (job.download(tmp_path / "model") / "weights").read_text() == "trained"
        assert names_in(job.folder / "output" / "output.tar.gz") == ["scores"]
        assert left_of(job) == []
        seen.append(json.loads(text(job, stream="stdout")))
    theirs, ours = seen
    for same in ("arguments", "folder", "data"):
        assert theirs[same] == ours[same]
    assert theirs["data"] == {"numbers.csv": "1,2\n"}
    assert theirs["configuration"] == ["hyperparameters.json", "inputdataconfig.json", "resourceconfig.json"]
    environment = theirs["environment"]
    assert [name for name in environment if name.startswith("ESTIMATOR_")] == []
    assert environment.items() >= {**ENVIRONMENT, "AWS_REGION": "eu-west-1", "HOME": "/root"}.items()
    same_variables = {name: value for name, value in environment.items() if name.startswith("SM_")}
    described = json.loads(same_variables.pop("SM_TRAINING_ENV"))
    assert same_variables.items() <= ours["environment"].items()
    assert len(same_variables) > 30
    # The package describes its own extensions there, and we describe ours.
    other = json.loads(ours["environment"]["SM_TRAINING_ENV"])
    assert {name for name in described if described[name] != other.get(name)} == {
        *("job_name", "distribution_hosts", "topology"),
        *("is_modelparallel_enabled", "is_smddprun_installed", "is_smddpmprun_installed"),
    } - {name for name in described if described[name] is None}


@pytest.mark.parametrize("hosts", [1, 2])
def test_its_own_mpi_makes_the_world(worlds, hosts):
    ranks = ranks_of(worlds[hosts])
    size = 2 * hosts
    assert [each["rank"] for each in ranks] == list(range(size))
    assert {(each["size"], each["sum"]) for each in ranks} == {(size, sum(range(size)))}
    assert [each["host"] for each in ranks] == ["algo-1", "algo-1", "algo-2", "algo-2"][:size]
    assert [each["local"] for each in ranks] == [[0, 2], [1, 2]] * hosts
    assert left_of(worlds[hosts]) == []


@pytest.mark.parametrize("hosts", [1, 2])
def test_every_rank_has_the_arguments_and_variables(worlds, hosts):
    expected = ["-b", "True", "--da-sh", "[1, 'two', None]", "--dict", "a=1,k=v", "--empty", "", "--lr", "0.5"]
    expected += ["--none", "", "--number", "1e3", "--text", HYPERPARAMETERS["text"]]
    for each in ranks_of(worlds[hosts]):
        assert each["arguments"] == expected
        assert each["colour"] == "blue"
        assert each["variables"]["SM_HP_TEXT"] == HYPERPARAMETERS["text"]
        assert json.loads(each["variables"]["SM_HOSTS"]) == ["algo-1", "algo-2"][:hosts]
        # As the package does it: our own toolkit gives each rank the name of its own host.
        assert each["variables"]["SM_CURRENT_HOST"] == "algo-1"


def test_the_first_host_writes_the_model_and_the_others_are_kept_apart(worlds, tmp_path):
    job = worlds[2]
    assert [each.name for each in job.download(tmp_path / "model").iterdir()] == ["weights-algo-1"]
    output = job.folder / "output"
    assert names_in(output / "output.tar.gz") == ["rank-0", "rank-1"]
    assert names_in(output / "hosts" / "algo-2" / "model.tar.gz") == ["weights-algo-2"]
    assert names_in(output / "hosts" / "algo-2" / "output.tar.gz") == ["rank-2", "rank-3"]


def test_what_the_containers_write_can_be_read_by_host(worlds):
    first, second = (text(worlds[2], host=host) for host in ("algo-1", "algo-2"))
    assert all(f"rank {rank} is done" in first for rank in range(4))
    assert "MPI training job status file found" in second
    assert "Reporting training SUCCESS" in first and "Reporting training SUCCESS" in second


def test_a_failing_script_is_reported_with_its_words_and_its_exit_code(tmp_path, their_image):
    source = "import sys; print('loading'); print('no such digit', file=sys.stderr); sys.exit(3)"
    with pytest.raises(JobFailed) as failed:
        estimator(tmp_path, source, their_image).fit(logs="none")
    assert str(failed.value).startswith(f"the job {failed.value.job_name} failed: algo-1 exited with code 1\n\n")
    assert "ExecuteUserScriptError:\nExitCode 3" in str(failed.value)
    assert "no such digit" in str(failed.value)
    verdict = failed.value.verdict
    assert (verdict.kind, verdict.host, verdict.exit_code) == ("exit_code", "algo-1", 1)
    assert left_of(Job.attach(failed.value.job_name)) == []


def test_a_failure_that_the_script_itself_describes_is_kept(tmp_path, their_image):
    source = "import os; open('/opt/ml/output/failure', 'w').write('the disk of digits is full'); os._exit(7)"
    with pytest.raises(JobFailed, match="the disk of digits is full"):
        estimator(tmp_path, source, their_image).fit(logs="none")


def test_a_rank_that_fails_on_another_host_ends_the_job_on_all(tmp_path, their_image):
    source = """
import time
from mpi4py import MPI
time.sleep(1.5)
if MPI.COMM_WORLD.rank == 3:
    raise ValueError("no such digit")
MPI.COMM_WORLD.Barrier()
"""
    job = estimator(tmp_path, source, their_image, processes=2, instance_count=2).fit(wait=False)
    with pytest.raises(JobFailed) as failed:
        job.wait(2 * SECONDS)
    # The other host would now wait for a word of this one, and would report success.
    assert failed.value.verdict.host == "algo-1"
    assert "Traceback (most recent call last):" in str(failed.value)
    assert "ValueError: no such digit" in str(failed.value)
    assert "ExecuteUserScriptError:\nExitCode 1" in str(failed.value)
    assert "Reporting training SUCCESS" not in text(job)
    assert left_of(job) == []


def test_stop_ends_a_job_that_no_signal_reaches(tmp_path, their_image):
    source = """
import os, pathlib, time
pathlib.Path(os.environ["SM_MODEL_DIR"], "weights").write_text("half trained")
print("up", flush=True)
time.sleep(300)
"""
    job = estimator(tmp_path, source, their_image, stop_timeout=1).fit(wait=False)
    assert any(line.data == b"up\n" for line in job.logs(stream="stdout", follow=True))
    asked = time.monotonic()
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert time.monotonic() - asked >= 1
    assert (job.download(tmp_path / "model") / "weights").read_text() == "half trained"
    assert left_of(job) == []


def test_a_host_is_found_by_its_name_though_it_has_ended(tmp_path, their_image):
    """The package waits until it can resolve all hosts, for a quarter of an hour; one may have ended by then."""
    source = """
import os, socket, time
until = time.monotonic() + (4 if os.environ["SM_CURRENT_HOST"] == "algo-1" else 0)
while time.monotonic() < until:
    socket.gethostbyname("algo-2")
    time.sleep(0.1)
"""
    job = estimator(tmp_path, source, their_image, instance_count=2).fit(logs="none")
    assert job.status == "Completed"


def test_what_the_job_leaves_belongs_to_its_user(their_image):
    """Root in the containers writes it; another user, who may use the engine, called `fit()`."""
    source = """
import os, pathlib
place = pathlib.Path(os.environ["SM_MODEL_DIR"], "deep", "er")
place.mkdir(parents=True, mode=0o700)
(place / "weights").write_text("trained")
(place / "latest").symlink_to("weights")
os.chmod(place / "weights", 0o600)
assert os.getuid() == 0 and os.environ["HOME"] == "/root"  # where the keys for MPI are
"""
    client = """
import sys
from estimator_sdk import Estimator
job = Estimator(entry_point=sys.argv[1], image_uri=sys.argv[2], instance_count=2).fit(logs="none")
assert (job.download(sys.argv[3]) / "deep" / "er" / "weights").read_text() == "trained"
"""
    with another_user() as user:
        (user.folder / "train.py").write_text(source)
        user.run(client, str(user.folder / "train.py"), their_image, str(user.folder / "model"))
        left = user.left()
        assert {path.name for path in left} >= {"weights", "latest", "success", "frames"}
        assert [path for path in left if path.lstat().st_uid != user.uid] == []


def test_words_that_only_our_toolkit_carries_are_refused_before_anything_starts(tmp_path, their_image):
    with pytest.raises(
        InvalidArgument, match=r"^arguments needs our toolkit, but .* has a `train` program of its own, which is run"
    ):
        estimator(tmp_path, "", their_image, arguments=["--verbose"]).plan()
    with pytest.raises(InvalidArgument, match=r"^command needs our toolkit, but"):
        Estimator(command=["python", "train.py"], source_dir=tmp_path, image_uri=their_image).plan()
