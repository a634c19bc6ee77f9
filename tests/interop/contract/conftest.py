"""Both toolkits, each in its image, and one job of each that many rows look at."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from . import worlds
from .containers import Ended, Host, Job, Toolkit

SCRIPT = """
import json, os, pathlib, sys
base = pathlib.Path(os.environ["SM_MODEL_DIR"]).parent
for place in ("output/data", "output/intermediate", "checkpoints"):
    (base / place / "written").write_text("by the script")
stream = base / "input/data/stream_0"
(base / "model/report.json").write_text(json.dumps({
    "arguments": sys.argv[1:],
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "data": (base / "input/data/train/a.csv").read_text() if (base / "input/data/train").exists() else "",
    "stream": stream.read_text() if stream.exists() else "",
    "restored": [each.name for each in (base / "checkpoints").iterdir()],
}))
"""
HYPERPARAMETERS = {
    "Upper": "1",
    "b": "true",
    "da-sh": "3",
    "dict": '{"b": 1, "a": [null, "x"]}',
    "empty": '""',
    "list": '[1, "two", null, 0.5]',
    "none": "null",
    "quoted": '"q"',
    "raw": "hello",
    "science": "1e3",
    "text": json.dumps('it\'s "quoted"  $(id) `id` ; & 馬\n'),
    "under_score": "0.1",
    "sagemaker_container_log_level": "10",
    "sagemaker_job_name": '"job-1"',
    "sagemaker_region": '"eu-west-1"',
    "sagemaker_new": "[1]",
    "default_user_module_name": '"m"',
    "_tuning_objective_metric": '"loss"',
}
GROUPS = [
    {"instance_group_name": "cpu", "instance_type": "ml.c5.xlarge", "hosts": ["algo-1"]},
    {"instance_group_name": "more", "instance_type": "ml.m5.xlarge", "hosts": []},
]
RESOURCES = {
    "current_instance_type": "ml.c5.xlarge",
    "current_group_name": "cpu",
    "instance_groups": GROUPS,
    "network_interface_name": "eth0",
    "topology": [{"hostName": "algo-1", "capacityUnitId": "1"}],
}
CHANNELS = {
    "train": {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"},
    "stream": {"TrainingInputMode": "Pipe", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"},
}
ENVIRONMENT = {
    "TRAINING_JOB_NAME": "job-1",
    "TRAINING_JOB_ARN": "arn:aws:sagemaker:eu-west-1:123456789012:training-job/job-1",
    "AWS_REGION": "eu-west-1",
    "COLOUR": "light blue",
}


@pytest.fixture(scope="session")
def toolkits(image: str, their_image: str) -> dict[str, Toolkit]:
    return {name: Toolkit(name, uri) for name, uri in (("ours", image), ("theirs", their_image))}


@pytest.fixture(scope="package", autouse=True)
def all_worlds(
    toolkits: dict[str, Toolkit], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, dict[str, list[Host]]]]:
    """The MPI jobs of each toolkit, started before any other test of this folder, and gone after the last."""
    with contextlib.ExitStack() as stack:
        yield {
            name: stack.enter_context(worlds.start(toolkit, tmp_path_factory.mktemp))
            for name, toolkit in toolkits.items()
        }


@pytest.fixture(scope="session", params=["ours", "theirs"])
def toolkit(request: pytest.FixtureRequest, toolkits: dict[str, Toolkit]) -> Toolkit:
    return toolkits[request.param]


@pytest.fixture
def run(toolkit: Toolkit, tmp_path: Path) -> Callable[[Job], Ended]:
    """Runs a job of one host to its end; a test may run several."""

    def to_the_end(job: Job) -> Ended:
        with toolkit.start(job, tmp_path / f"job-{len(list(tmp_path.iterdir()))}") as (host,):
            return host.ended()

    return to_the_end


@pytest.fixture(scope="session")
def seen(toolkit: Toolkit, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The end of one job with a bit of everything."""
    files = {"input/data/train/a.csv": "1,2\n", "checkpoints/restored": "by the platform"}
    job = Job({"train.py": SCRIPT}, files, HYPERPARAMETERS, CHANNELS, RESOURCES, ENVIRONMENT)
    folder = tmp_path_factory.mktemp(toolkit.name)
    fifo = folder / "algo-1/input/data/stream_0"
    fifo.parent.mkdir(parents=True)
    os.mkfifo(fifo)
    # Ends with its reader, or with this process.
    threading.Thread(target=fifo.write_text, args=["3,4\n"], daemon=True).start()
    with toolkit.start(job, folder) as (host,):
        return host.ended()
