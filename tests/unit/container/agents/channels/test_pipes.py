"""The FIFOs of a channel, and a store that loses what they are fed from."""

from __future__ import annotations

import os
import threading
import time

import pytest
from estimator_container.agents.channels import stream
from estimator_container.agents.channels.channel import ChannelTask
from estimator_container.agents.channels.epochs import Epochs
from estimator_container.agents.channels.pipes import Pipe
from estimator_container.storage import StorageError, open_store

from tests.waiting import wait_for


class Fed:
    """A channel of one object that is fed to a host, and why that has ended."""

    def __init__(self, folder, monkeypatch):
        (folder / "source").mkdir()
        (folder / "source" / "a").write_bytes(b"of the channel")
        self.reads, self.failed, self.is_gone = 0, [], False
        self._read_from = stream._read
        monkeypatch.setattr(stream, "_read", self._take)
        store = open_store(f"file://{folder / 'source'}")
        channel = ChannelTask("train", f"file://{folder / 'source'}", "")
        self._pipe = Pipe(channel, store, Epochs(channel, store.list(), 1), 0, str(folder / "data"))
        self._pipe.make(0)
        self._data = folder / "data"
        threading.Thread(target=self._feed, daemon=True).start()

    def _take(self, store, piece):
        is_gone = self.is_gone
        self.reads += 1
        if is_gone:
            raise StorageError("it is gone")
        return self._read_from(store, piece)

    def _feed(self):
        try:
            self._pipe.feed()
        except StorageError as error:
            self.failed.append(str(error))

    def path(self, epoch):
        return self._data / f"train_{epoch}"


@pytest.fixture
def fed(tmp_path, monkeypatch):
    return Fed(tmp_path, monkeypatch)


def test_an_epoch_that_cannot_be_had_is_no_failure_before_somebody_reads_it(fed):
    assert fed.path(0).read_bytes() == b"of the channel"
    wait_for(lambda: fed.reads == 2)  # the next one is asked for before
    fed.is_gone = True
    assert fed.path(1).read_bytes() == b"of the channel"
    wait_for(lambda: fed.reads == 3)
    time.sleep(0.5)
    assert fed.failed == []
    reader = os.open(fed.path(2), os.O_RDONLY)
    wait_for(lambda: fed.failed == ["it is gone"])
    os.close(reader)
