"""The stores under test."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from estimator_container.storage import Store, open_store

from .servers import BUCKET, Server

KINDS = ["file", "localstack", "ceph"]


@pytest.fixture(autouse=True)
def _no_aws(no_aws):
    """For every test here."""


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def server(kind, request) -> Server | None:
    """The server behind the store, if there is one."""
    return None if kind == "file" else request.getfixturevalue(f"{kind}_server")


@pytest.fixture
def uri(kind, server, tmp_path, monkeypatch) -> str:
    """The root of a store of the test's own, and the environment in which it opens."""
    if server is None:
        return f"file://{tmp_path / 'store'}"
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def store(uri) -> Store:
    return open_store(uri, retry_seconds=10)


MANY = 1_010  # keys; more than one page has


def with_many_keys(root: str, folder: Path) -> tuple[str, list[str]]:
    (folder / "x").write_bytes(b"x")
    keys = [f"{number:05d}" for number in range(MANY)]
    open_store(root).upload_many((str(folder / "x"), key) for key in keys)
    return root, keys


@pytest.fixture(scope="session")
def many_on_localstack(localstack_server, tmp_path_factory) -> tuple[str, list[str]]:
    """The URI of a root with many keys, and the keys."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in localstack_server.environment().items():
            patch.setenv(name, value)
        return with_many_keys(f"s3://{BUCKET}/many", tmp_path_factory.mktemp("many"))


@pytest.fixture
def many(kind, uri, tmp_path, request) -> tuple[str, list[str]]:
    """The same on each store."""
    return request.getfixturevalue("many_on_localstack") if kind == "localstack" else with_many_keys(uri, tmp_path)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder for what is downloaded."""
    made = tmp_path / "folder"
    made.mkdir()
    return made


@pytest.fixture
def through_proxy(proxy) -> Callable[..., Store]:
    """Opens a store of the test's own behind the proxy."""
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"

    def opened(**options) -> Store:
        return open_store(root, **{"retry_seconds": 10, "stall_seconds": 10, **options})

    return opened
