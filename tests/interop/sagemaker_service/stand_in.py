"""A SageMaker, CloudWatch Logs, S3, STS and IAM of the tests' own: moto's server, seen from the side of who runs it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest

from estimator_sdk.backends.sagemaker import job as sagemaker_job
from estimator_sdk.backends.sagemaker import log_events
from tests.ports import free_port
from tests.stores.servers import running
from tests.waiting import SECONDS, wait_for

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
        urllib.request.urlopen(request, timeout=SECONDS).close()

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


@contextlib.contextmanager
def running_service(folder: Path) -> Iterator[Platform]:
    """The server, until the end of the block."""
    if not MOTO.exists():
        raise RuntimeError(f"{MOTO} is missing: run scripts/setup tests")
    port = free_port()
    service = [str(MOTO), str(Path(__file__).with_name("service.py")), str(port)]
    with running(service, folder, {}, until="Running on"):
        yield Platform(f"http://127.0.0.1:{port}")


def become_user(patch: pytest.MonkeyPatch, endpoint: str) -> None:
    """Give this process the environment of somebody who has an account, and waits that suit a test."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": "tester-secret",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": endpoint,
    }.items():
        patch.setenv(name, value)
    for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL_")]:
        patch.delenv(name)
    patch.setattr(sagemaker_job, "POLL_SECONDS", 0.02)
    patch.setattr(log_events, "QUIET_SECONDS", 0.5)
    patch.setattr(log_events, "QUIET_POLL_SECONDS", 0.02)
