"""The restore that docs/checkpoints.md shows, from S3 with boto3."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from estimator_container.agents.checkpoints.publisher import Publisher
from estimator_container.agents.checkpoints.restore import claim
from estimator_container.agents.watching.folder import WatchedFolder
from estimator_container.storage import open_store

from .servers import BUCKET

DOCUMENT = Path(__file__).parents[2] / "docs" / "checkpoints.md"


@pytest.fixture
def shown(monkeypatch, localstack_server):
    for name, value in localstack_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    names = {}
    for code in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), flags=re.S):
        exec(code, names)
    return names


def test_boto3_alone_restores_a_snapshot(shown, tmp_path):
    prefix = f"{uuid.uuid4().hex}/deep"
    store = open_store(f"s3://{BUCKET}/{prefix}", retry_seconds=10)
    written, target = tmp_path / "written", tmp_path / "target"
    (written / "step").mkdir(parents=True)
    (written / "step" / "model").write_bytes(b"x" * 100_000)
    target.mkdir()
    folder = WatchedFolder(str(written))
    publisher = Publisher(store, claim(store, "job"), folder)
    publisher.begin_with(None, "nothing")
    publisher.publish(folder.state({}, 20.0))
    folder.close()
    assert shown["restore"](*shown["on_s3"](BUCKET, prefix), str(target)) == "000001-00000001"
    assert (target / "step" / "model").read_bytes() == b"x" * 100_000
