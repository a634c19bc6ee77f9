"""The services of one AWS region: clients that are made when they are needed, and one way to call them."""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import BackendError, InvalidArgument
from ...values.debugging import debug
from . import faults

# Long enough for a throttled account, short enough that somebody who waits still does.
_ATTEMPTS = 10
_CONNECT_SECONDS, _READ_SECONDS = 10, 60
_DEFAULT_BUCKET = re.compile(r"sagemaker-[a-z0-9-]+-(\d{12})")


class Service:
    """What AWS does for a job. Region, credentials and endpoints are those that botocore finds."""

    def __init__(self, region: str | None = None) -> None:
        """Raises InvalidArgument without a region, BackendError without boto3; sends nothing."""
        self._session = new_session()
        found = region or region_of(self._session)
        if found is None:
            raise faults.no_region()
        self.region: str = found
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def call(self, service: str, operation: str, doing: str, **parameters: object) -> dict[str, Any]:
        """The answer to one request, such as `call("sagemaker", "list_training_jobs", "list jobs")`.

        Throttling and passing faults are retried. Raises `faults.Refused` for an answer that is no, BackendError for
        no answer, and InvalidArgument for a request that the service's model does not allow.
        """
        with self._asked_for(service, operation, doing):
            answer: dict[str, Any] = getattr(self.client(service), operation)(**parameters)
        return answer

    def pages(self, service: str, operation: str, doing: str, **parameters: object) -> Iterator[dict[str, Any]]:
        """The pages of an answer, each fetched when it is wanted. Raises as `call`."""
        with self._asked_for(service, operation, doing):
            yield from self.client(service).get_paginator(operation).paginate(**parameters)

    @contextmanager
    def _asked_for(self, service: str, operation: str, doing: str) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        debug("%s %s in %s", service, operation, self.region)
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise faults.translate(error, doing, self.region) from None

    def client(self, service: str) -> Any:  # noqa: ANN401 - botocore's clients have no types
        """botocore's client of a service."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._session.create_client(service, self.region, config=_config())
            return self._clients[service]

    def check(self, request: dict[str, Any]) -> None:
        """Raises InvalidArgument for a document that CreateTrainingJob does not take; sends nothing."""
        from botocore.validate import ParamValidator

        shape = self.client("sagemaker").meta.service_model.operation_model("CreateTrainingJob").input_shape
        found = ParamValidator().validate(request, shape)
        if found.has_errors():
            raise faults.invalid_request(found.generate_report())

    @functools.cached_property
    def default_place(self) -> str:
        """`s3://sagemaker-REGION-ACCOUNT`, where SageMaker's SDK keeps what has no other place; it may be missing."""
        account = self.call("sts", "get_caller_identity", "find out the account of the AWS credentials")["Account"]
        return f"s3://sagemaker-{self.region}-{account}"

    def ensure_bucket(self, uri: str) -> None:
        """Make the bucket of an `s3://` URI if it is the account's default one and does not exist.

        Raises BackendError, also if the name belongs to somebody else.
        """
        bucket = uri.removeprefix("s3://").partition("/")[0]
        owner = _DEFAULT_BUCKET.fullmatch(bucket)
        if owner is None:
            return
        try:
            self.call("s3", "head_bucket", f"use the bucket {bucket}", Bucket=bucket, ExpectedBucketOwner=owner[1])
        except faults.Refused as error:
            if error.code not in ("404", "NoSuchBucket"):
                raise
            place = {} if self.region == "us-east-1" else {"LocationConstraint": self.region}
            extra = {"CreateBucketConfiguration": place} if place else {}
            self.call("s3", "create_bucket", f"make the bucket {bucket}", Bucket=bucket, **extra)

    def role_arn(self, role: str) -> str:
        """The ARN of a role that is given by its ARN or its name. Raises InvalidArgument for an unknown name."""
        if role.startswith("arn:"):
            return role
        try:
            answer = self.call("iam", "get_role", f"look up the role {role!r}", RoleName=role.rpartition("/")[2])
        except faults.Refused as error:
            if error.code != "NoSuchEntity":
                raise
            what = f"role {role!r} is not a role in this account; give the ARN or the name of one that is"
            raise InvalidArgument("role", what) from None
        arn: str = answer["Role"]["Arn"]
        return arn


class Services:
    """One `Service` a region, each made when it is asked for; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[str | None, Service] = {}

    def of_region(self, region: str | None) -> Service:
        """Raises as `Service`."""
        with self._lock:
            if region not in self._made:
                self._made[region] = Service(region)
            return self._made[region]


def new_session() -> Any:  # noqa: ANN401
    """botocore's session of the environment as it is now. Raises BackendError where botocore is not installed."""
    try:
        from botocore.session import Session
    except ImportError:
        raise BackendError(
            "backend 'sagemaker' needs boto3, which is not installed; pip install 'estimator-sdk[sagemaker]'"
        ) from None
    session = Session()
    session.register_component("data_loader", _models())
    return session


def region_of(session: Any) -> str | None:  # noqa: ANN401
    """The region of the environment or the profile. Raises BackendError for a profile that is not there."""
    from botocore.exceptions import BotoCoreError

    try:
        found: str | None = os.environ.get("AWS_REGION") or session.get_config_variable("region")
    except BotoCoreError as error:
        raise faults.translate(error, "use AWS", "") from None
    return found or None


@functools.cache
def _models() -> Any:  # noqa: ANN401
    """The models of the services, which are megabytes of JSON: read once for all sessions."""
    from botocore.loaders import create_loader

    return create_loader()


def _config() -> Any:  # noqa: ANN401
    from botocore.config import Config

    given = {"AWS_RETRY_MODE", "AWS_MAX_ATTEMPTS"} & os.environ.keys()
    retries = None if given else {"mode": "standard", "total_max_attempts": _ATTEMPTS}
    return Config(
        retries=retries, connect_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS, user_agent_extra="estimator-sdk"
    )
