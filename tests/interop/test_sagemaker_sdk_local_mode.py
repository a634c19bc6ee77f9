"""SageMaker's SDK 2 runs our image in its local mode, and one script sees the same wherever it runs.

Four ways are compared: our image and one of the package sagemaker-training, each started by that SDK and by our Docker
backend. The SDK is the real one from PyPI, in its own environment, with Docker Compose; its jobs run side by side.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from estimator_sdk import Estimator
from estimator_sdk.backends.docker.engine import JOB_SECONDS
from tests.waiting import wait_for

SDK = Path(__file__).parents[2] / ".venv-sagemaker" / "bin" / "python"
DRIVER = Path(__file__).parent / "sagemaker_sdk" / "local_jobs.py"
NETWORK = "sagemaker-local"
QUIET = "SchemaVersion: '1.0'\nSageMaker: {PythonSDK: {Modules: {TelemetryOptOut: true}}}\n"
SECONDS = 400

HYPERPARAMETERS = {
    "b": True,
    "da-sh": [1, "two", None],
    "dict": {"k": "v", "a": 1},
    "empty": "",
    "lr": 0.5,
    "number": 1000.0,
    "text": 'it\'s "quoted" $(id) & 馬\n',
}
ARGUMENTS = ["-b", "True", "--da-sh", "[1, 'two', None]", "--dict", "a=1,k=v", "--empty", "", "--lr", "0.5"]
ARGUMENTS += ["--number", "1000.0", "--text", HYPERPARAMETERS["text"]]

REPORT = """
import json, os, pathlib, sys
channel = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"])
pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "scores").write_text("0.9")
pathlib.Path(os.environ["SM_MODEL_DIR"], "report.json").write_text(json.dumps({
    "arguments": sys.argv[1:],
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "data": {each.name: each.read_text() for each in channel.iterdir()},
}))
"""
WORLD = """
import json, os, pathlib, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
seen = world.gather({
    "rank": world.rank,
    "sum": world.allreduce(world.rank),
    "host": os.environ["SM_CURRENT_HOST"],
    "local": os.environ["LOCAL_RANK"],
    "hosts": json.loads(os.environ["SM_HOSTS"]),
    "groups": os.environ["SM_DISTRIBUTION_INSTANCE_GROUPS"],
    "arguments": sys.argv[1:],
    "model": os.listdir(os.environ["SM_MODEL_DIR"]),
})
if world.rank == 0:
    pathlib.Path(os.environ["SM_MODEL_DIR"], "report.json").write_text(json.dumps(seen))
"""
FAILING = """
import sys
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 3:
    raise ValueError("no such digit")
MPI.COMM_WORLD.Barrier()
"""
OF_THE_PLATFORM = {
    *("SM_HOSTS", "SM_CURRENT_HOST", "SM_RESOURCE_CONFIG", "SM_INPUT_DATA_CONFIG", "SM_TRAINING_ENV"),
    *("SM_CURRENT_INSTANCE_GROUP_HOSTS", "SM_INSTANCE_GROUPS", "SM_INSTANCE_GROUPS_DICT", "SM_MODULE_DIR"),
}
"""What the hosts are called, what the platform says of them and of their channels, and where it has put the code."""


@dataclass
class LocalJob:
    """A job of the SDK in its local mode, from its start to what it leaves."""

    folder: Path

    def outcome(self) -> dict[str, Any]:
        code = wait_for(self.exit_code, SECONDS, self.log)
        assert code == "0", self.log()
        return json.loads((self.folder / "outcome.json").read_text())

    def exit_code(self) -> str:
        """Empty while it runs."""
        path = self.folder / "exit_code"
        return path.read_text() if path.exists() else ""

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def read(self, archive: str, name: str) -> str:
        with tarfile.open(self.folder / "out" / archive) as tar:
            file = tar.extractfile(name)
            assert file is not None
            return file.read().decode()

    def report(self) -> Any:
        outcome = self.outcome()
        assert outcome == {"model_data": f"file://{self.folder}/out/model.tar.gz"}, self.log()
        return json.loads(self.read("model.tar.gz", "report.json"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    for name, text in {"report.py": REPORT, "world.py": WORLD, "failing.py": FAILING}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "numbers.csv").write_text("1,2\n")
    return folder


@pytest.fixture(scope="module")
def network() -> Iterator[None]:
    """That of the local mode; two jobs that start at the same time would make two of that name."""
    listed = subprocess.run(
        ["docker", "network", "ls", "-q", "-f", f"name=^{NETWORK}$"], capture_output=True, check=True
    )
    if not listed.stdout:
        subprocess.run(["docker", "network", "create", NETWORK], check=True, stdout=subprocess.DEVNULL)
    yield
    if not listed.stdout:
        subprocess.run(["docker", "network", "rm", NETWORK], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def jobs(
    image: str, their_image: str, source: Path, data: Path, network: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, LocalJob]]:
    """All jobs of the SDK, by name; they run beside the tests until somebody needs them."""
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    known = {"source_dir": str(source), "hyperparameters": HYPERPARAMETERS, "instance_count": 1}
    report = {
        **known,
        "entry_point": "report.py",
        "inputs": {"train": f"file://{data}"},
        "environment": {"COLOUR": "blue"},
    }
    world = {**known, "framework": "PyTorch", "image_uri": image, "distribution": mpi, "instance_count": 2}
    described = {
        "ours": {**report, "image_uri": image},
        "theirs": {**report, "image_uri": their_image},
        "world": {**world, "entry_point": "world.py"},
        "failing": {**world, "entry_point": "failing.py"},
    }
    started = {name: LocalJob(tmp_path_factory.mktemp(name)) for name in described}
    for name, job in described.items():
        folder = started[name].folder
        (folder / "root").mkdir()
        (folder / "job.json").write_text(json.dumps({**job, "output_path": f"file://{folder / 'out'}"}))
    driver = start([job.folder for job in started.values()], tmp_path_factory.mktemp("driver"))
    yield started
    with contextlib.suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    for job in started.values():
        for compose in (job.folder / "root").glob("*/docker-compose.yaml"):
            # Leaves the network, which the others still use.
            subprocess.run(
                ["docker-compose", "-f", str(compose), "rm", "-sf"], check=True, capture_output=True, env=environment()
            )


def start(jobs: list[Path], folder: Path) -> subprocess.Popen[bytes]:
    """A process, with a group of its own, that runs the jobs of these folders."""
    if not SDK.exists():
        raise RuntimeError(f"{SDK} is missing: run scripts/setup tests")
    (folder / "quiet.yaml").write_text(QUIET)
    settings = {
        **environment(),
        "SAGEMAKER_USER_CONFIG_OVERRIDE": str(folder / "quiet.yaml"),
        "SAGEMAKER_ADMIN_CONFIG_OVERRIDE": str(folder / "quiet.yaml"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return subprocess.Popen([SDK, DRIVER, *jobs], env=settings, start_new_session=True)


def environment() -> dict[str, str]:
    """That of this process without what is meant for others; Compose waits for the engine as long as our jobs do."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))},
        "COMPOSE_HTTP_TIMEOUT": str(JOB_SECONDS),
    }


@pytest.fixture(scope="module")
def reports(
    jobs: dict[str, LocalJob],
    image: str,
    their_image: str,
    source: Path,
    data: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[tuple[str, str], Any]:
    """What the same script saw, by image and platform."""
    found: dict[tuple[str, str], Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTIMATOR_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("AWS_REGION", "eu-west-1")
        for name, uri in (("ours", image), ("theirs", their_image)):
            estimator = Estimator(
                entry_point="report.py",
                source_dir=str(source),
                image_uri=uri,
                hyperparameters=HYPERPARAMETERS,
                environment={"COLOUR": "blue"},
            )
            job = estimator.fit({"train": f"file://{data}"}, logs="none")
            model = job.download(tmp_path_factory.mktemp("model") / name)
            found[name, "estimator"] = json.loads((model / "report.json").read_text())
    for name in ("ours", "theirs"):
        found[name, "local mode"] = jobs[name].report()
    return found


def variables(report: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in report["environment"].items() if name.startswith("SM_")}


def test_one_script_has_the_same_arguments_and_data_and_folder_wherever_it_runs(reports):
    assert len(reports) == 4
    for report in reports.values():
        assert report["arguments"] == ARGUMENTS
        assert report["data"] == {"numbers.csv": "1,2\n"}
        assert report["folder"] == "/opt/ml/code"
        assert report["environment"]["COLOUR"] == "blue"


@pytest.mark.parametrize("platform", ["estimator", "local mode"])
def test_on_one_platform_both_images_have_the_same_variables(reports, platform):
    ours, theirs = (variables(reports[name, platform]) for name in ("ours", "theirs"))
    whole = [json.loads(each.pop("SM_TRAINING_ENV")) for each in (ours, theirs)]
    if platform == "local mode":  # each job has its own names there
        names = {"SM_HOSTS", "SM_CURRENT_HOST", "SM_RESOURCE_CONFIG"}
        assert names <= ours.keys() & theirs.keys()
        ours, theirs = ({name: each[name] for name in each.keys() - names} for each in (ours, theirs))
        assert {"hosts", "current_host", "resource_config", "master_hostname", "job_name"} <= whole[1].keys()
    assert len(theirs) > 30 and theirs.items() <= ours.items()
    # The package describes its own extensions there.
    assert whole[1].keys() - whole[0].keys() == {
        *("distribution_hosts", "topology"),
        *("is_modelparallel_enabled", "is_smddprun_installed", "is_smddpmprun_installed"),
    }


@pytest.mark.parametrize("image_of", ["ours", "theirs"])
def test_one_image_has_the_same_variables_on_both_platforms(reports, image_of):
    here, there = (variables(reports[image_of, platform]) for platform in ("estimator", "local mode"))
    assert here.keys() == there.keys()
    differ = {name for name in here if here[name] != there[name]}
    known = OF_THE_PLATFORM | ({"SM_MASTER_ADDR"} if image_of == "ours" else set())
    assert differ <= known, {name: (here[name], there[name]) for name in differ - known}


def test_the_sdk_has_the_model_and_the_output_of_our_image(jobs):
    jobs["ours"].report()
    assert jobs["ours"].read("output.tar.gz", "data/scores") == "0.9"
    assert jobs["ours"].read("output.tar.gz", "success") == ""


def test_two_instances_are_one_world_of_mpi(jobs):
    ranks = jobs["world"].report()
    hosts = ranks[0]["hosts"]
    assert len(hosts) == 2
    assert [each["rank"] for each in ranks] == [0, 1, 2, 3]
    assert [(each["host"], each["local"]) for each in ranks] == [(host, str(rank)) for host in hosts for rank in (0, 1)]
    for each in ranks:
        assert each["sum"] == 6 and each["hosts"] == hosts and each["arguments"] == ARGUMENTS
        assert each["groups"] == '["homogeneousCluster"]'
        # What the hosts agreed on in the folder that they share there is gone.
        assert each["model"] == []


def test_a_failing_rank_on_the_second_instance_fails_the_job_and_is_named(jobs):
    assert "exited with code: 1" in jobs["failing"].outcome()["error"]
    failure = jobs["failing"].read("output.tar.gz", "failure")
    assert failure.startswith("rank 3 on algo-2-") and "exited with code 1: ValueError: no such digit" in failure
    assert "Traceback (most recent call last):" in failure
    assert "ValueError: no such digit" in jobs["failing"].log()
