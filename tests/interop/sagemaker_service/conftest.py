"""Somebody who has an account with the stand-in of the service, and what she submits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from estimator_sdk import Estimator
from tests.stores.fault_proxy import FaultProxy

from .stand_in import IMAGE, REGION, ROLE, Platform, become_user


@pytest.fixture
def settings(moto_server, no_aws, monkeypatch, tmp_path) -> None:
    """Her environment."""
    become_user(monkeypatch, moto_server)
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


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
            future.result(150)


def cloud(script: Path, **arguments) -> Estimator:
    """An estimator whose jobs run on SageMaker."""
    known = {"entry_point": script, "image_uri": IMAGE, "role": ROLE, "instance_type": "ml.m5.xlarge"}
    return Estimator(**{**known, **arguments})
