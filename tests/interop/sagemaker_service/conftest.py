"""A SageMaker, CloudWatch Logs, S3, STS and IAM of the tests' own: moto's server, driven from job to job."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest

from estimator_sdk import Estimator
from estimator_sdk.sagemaker import job as sagemaker_job
from estimator_sdk.sagemaker import log_events
from tests.conformance.jobs import wait_for
from tests.stores.fault_proxy import FaultProxy
from tests.stores.servers import free_port, running

MOTO = Path(__file__).parents[3] / ".venv-moto" / "bin" / "python"
REGION = "eu-west-1"
ACCOUNT = "123456789012"
IMAGE = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/estimator:1"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/training"
LONG_AGO = time.time() - 86400


@dataclass(frozen=True)
class Platform:
    """The service, seen from the side of who runs it."""

    endpoint: str

    def client(self, service: str):
        return _client(service, self.endpoint)

    def tell(self, name: str, **members) -> None:
        """What DescribeTrainingJob says of a job from now on."""
        data = json.dumps(members).encode()
        request = urllib.request.Request(f"{self.endpoint}/training-jobs/{name}", data, method="POST")
        urllib.request.urlopen(request, timeout=10).close()

    def waits_for(self, name: str, status: str = "InProgress") -> None:
        """Until a job has been submitted, or has been asked to stop."""
        client = self.client("sagemaker")

        def reached() -> bool:
            try:
                return client.describe_training_job(TrainingJobName=name)["TrainingJobStatus"] == status
            except client.exceptions.ClientError:
                return False

        wait_for(reached)

    def waits_until(self, condition: Callable[[], bool]) -> None:
        wait_for(condition)

    def ends(self, name: str, status: str = "Completed", **members) -> None:
        """A job ends, a day ago unless `TrainingEndTime` says otherwise."""
        self.tell(
            name, **{"TrainingJobStatus": status, "SecondaryStatus": status, "TrainingEndTime": LONG_AGO, **members}
        )

    def writes(self, name: str, host: str, *messages: str, start: int | None = None) -> None:
        """A host writes lines, a millisecond apart, `start` milliseconds after 1970."""
        logs = self.client("logs")
        stream = {"logGroupName": log_events.GROUP, "logStreamName": f"{name}/{host}-1700000000"}
        for make, names in ((logs.create_log_group, ("logGroupName",)), (logs.create_log_stream, tuple(stream))):
            with contextlib.suppress(logs.exceptions.ResourceAlreadyExistsException):
                make(**{each: stream[each] for each in names})
        first = int(time.time() * 1000) - len(messages) if start is None else start
        events = [{"timestamp": first + index, "message": message} for index, message in enumerate(messages)]
        for page in range(0, len(events), 1000):
            answer = logs.put_log_events(logEvents=events[page : page + 1000], **stream)
            assert "rejectedLogEventsInfo" not in answer


@functools.cache
def _client(service: str, endpoint: str):
    keys = {"aws_access_key_id": "platform", "aws_secret_access_key": "platform-secret"}
    return boto3.client(service, region_name=REGION, endpoint_url=endpoint, **keys)


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory) -> Iterator[str]:
    if not MOTO.exists():
        raise RuntimeError(f"{MOTO} is missing: run scripts/setup tests")
    port = free_port()
    service = [str(MOTO), str(Path(__file__).with_name("service.py")), str(port)]
    with running(service, tmp_path_factory.mktemp("moto"), {}, until="Running on"):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def settings(moto_server, no_aws, monkeypatch, tmp_path) -> None:
    """The environment of somebody who has an account."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": "tester-secret",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": moto_server,
        "ESTIMATOR_HOME": str(tmp_path / "home"),
    }.items():
        monkeypatch.setenv(name, value)
    for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sagemaker_job, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(log_events, "QUIET_SECONDS", 0.5)
    monkeypatch.setattr(log_events, "QUIET_POLL_SECONDS", 0.02)


@pytest.fixture
def platform(moto_server, settings) -> Platform:
    return Platform(moto_server)


@pytest.fixture
def aws_proxy(moto_server, settings, monkeypatch) -> Iterator[FaultProxy]:
    """Stands before the service; clients made from now on go through it."""
    made = FaultProxy(moto_server)
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
    yield made
    made.close()


@pytest.fixture
def script(tmp_path) -> Path:
    made = tmp_path / "train.py"
    made.write_text("print('hello')\n")
    return made


@pytest.fixture
def data(platform) -> str:
    """A channel with one object."""
    s3 = platform.client("s3")
    if "data" not in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]:
        s3.create_bucket(Bucket="data", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket="data", Key="digits/a", Body=b"1")
    return "s3://data/digits/"


@pytest.fixture
def estimator(settings, script) -> Estimator:
    return cloud(script)


@contextlib.contextmanager
def in_background(run: Callable[[], None]) -> Iterator[None]:
    """Something that happens on the side; what it raises is raised at the end of the block."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run)
        try:
            yield
        finally:
            future.result(30)


def cloud(script: Path, **arguments) -> Estimator:
    """An estimator whose jobs run on SageMaker."""
    known = {"entry_point": script, "image_uri": IMAGE, "role": ROLE, "instance_type": "ml.m5.xlarge"}
    return Estimator(**{**known, **arguments})
