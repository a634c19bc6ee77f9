from __future__ import annotations

import threading

import pytest
from estimator_container.agents.channels.channel import ChannelTask
from estimator_container.agents.channels.epochs import Epochs, Shared
from estimator_container.storage import Object, StorageError

OBJECTS = [Object(f"{number:02d}", number, "") for number in range(30)]


def test_what_is_shared_is_asked_for_once():
    asked = []
    shared = Shared(asked.append(number) or number for number in range(100))
    found = [[] for _ in range(4)]
    threads = [threading.Thread(target=each.extend, args=(shared,)) for each in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [list(range(100))] * 4
    assert asked == list(range(100))


def test_an_error_of_the_listing_is_everybodys_and_no_end():
    def listing():
        yield 1
        raise StorageError("gone")

    shared = Shared(listing())
    for _ in range(2):
        with pytest.raises(StorageError, match="gone"):
            list(shared)


def test_a_whole_channel_begins_before_its_listing_ends():
    def listing():
        yield OBJECTS[0]
        raise AssertionError("nobody has asked for more")

    epochs = Epochs(ChannelTask("train", "s3://b", "", is_piped=True), listing(), 2)
    assert next(iter(epochs.objects(1, 0))) == OBJECTS[0]


def test_shares_of_an_epoch_are_whole_together_and_change_with_a_shuffle():
    channel = ChannelTask("train", "s3://b", "", is_piped=True, is_sharded=True, seed=4)
    epochs = Epochs(channel, OBJECTS, 3)
    first, second = ([list(epochs.objects(host, epoch)) for host in range(3)] for epoch in range(2))
    for epoch in (first, second):
        assert sorted(each.key for share in epoch for each in share) == [each.key for each in OBJECTS]
    assert first != second
