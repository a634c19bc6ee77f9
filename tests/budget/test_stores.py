"""The requests that checkpoints and channels make to their store, and the bytes that go there and back."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from pathlib import Path

import pytest
from estimator_container.agents.channels.channel import ChannelTask
from estimator_container.agents.channels.fetch import fetch
from estimator_container.agents.channels.source import open_source
from estimator_container.agents.checkpoints import restore
from estimator_container.agents.checkpoints.publisher import Publisher
from estimator_container.agents.watching.folder import WatchedFolder
from estimator_container.storage import open_store

from tests.stores.servers import BUCKET

FILES, SIZE = 5, 100_000
HOSTS = [f"algo-{number}" for number in range(1, 5)]
KILOBYTE = 1_000


@pytest.fixture
def uri() -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "checkpoints"
    made.mkdir()
    for number in range(FILES):
        (made / f"weights-{number}").write_bytes(os.urandom(SIZE))
    return made


class Counting:
    """What goes through the proxy in a block."""

    def __init__(self, proxy) -> None:
        self._proxy = proxy

    def __enter__(self) -> Counting:
        self._requests, self._answered = len(self._proxy.requests), self._proxy.answered
        return self

    def __exit__(self, *_) -> None:
        made = self._proxy.requests[self._requests :]
        self.requests = Counter(kind(each) for each in made)
        self.sent = sum(each.size for each in made) // KILOBYTE
        self.received = (self._proxy.answered - self._answered) // KILOBYTE

    @property
    def counts(self) -> dict[str, int]:
        return {**self.requests, "kB sent": self.sent, "kB received": self.received}


def kind(request) -> str:
    return "LIST" if "list-type" in request.target else request.method


def publisher_of(uri: str, folder: Path) -> tuple[Publisher, WatchedFolder]:
    store, watched = open_store(uri), WatchedFolder(str(folder))
    publisher = Publisher(store, restore.claim(store, "budget"), watched)
    publisher.begin_with(None, restore.NOTHING)
    return publisher, watched


def publish(publisher: Publisher, watched: WatchedFolder) -> None:
    state = watched.state({}, 10.0)
    assert state is not None
    publisher.publish(state)


def test_the_claim_at_the_start_of_a_job(proxy, uri, keep_to_budget):
    store = open_store(uri)
    with Counting(proxy) as counted:
        restore.claim(store, "budget")
    keep_to_budget("a claim of a checkpoint's prefix", counted.counts)


def test_a_first_snapshot(proxy, uri, folder, keep_to_budget):
    publisher, watched = publisher_of(uri, folder)
    with Counting(proxy) as counted:
        publish(publisher, watched)
    assert counted.sent >= FILES * SIZE // KILOBYTE
    keep_to_budget(f"a snapshot of {FILES} files", counted.counts, slack=0.02)


def test_a_snapshot_of_which_one_file_is_new(proxy, uri, folder, keep_to_budget):
    publisher, watched = publisher_of(uri, folder)
    publish(publisher, watched)
    (folder / "draft").write_bytes(os.urandom(SIZE))
    (folder / "draft").rename(folder / "weights-0")
    with Counting(proxy) as counted:
        publish(publisher, watched)
    keep_to_budget(f"a snapshot of {FILES} files of which 1 is new", counted.counts, slack=0.02)


def test_a_restore(proxy, uri, folder, tmp_path, keep_to_budget):
    publish(*publisher_of(uri, folder))
    target = tmp_path / "restored"
    target.mkdir()
    store = open_store(uri)
    with Counting(proxy) as counted:
        restore.restore(store, str(target))
    assert {path.name for path in target.iterdir()} >= {path.name for path in folder.iterdir()}
    keep_to_budget(f"a restore of {FILES} files", counted.counts, slack=0.02)


def test_a_channel_comes_once_however_many_hosts_there_are(proxy, uri, folder, tmp_path, keep_to_budget):
    open_store(uri).upload_many((str(path), path.name) for path in sorted(folder.iterdir()))
    channel = ChannelTask("train", f"{uri}/", str(tmp_path / "channel"))
    with Counting(proxy) as counted:
        fetch(channel, open_source(channel), HOSTS, "symbolic", lambda *_: None)
    assert len(list((tmp_path / "channel" / "every-host").iterdir())) == FILES
    assert counted.received < 1.1 * FILES * SIZE / KILOBYTE
    keep_to_budget(f"a channel of {FILES} objects for {len(HOSTS)} hosts", counted.counts, slack=0.02)
