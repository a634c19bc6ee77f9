import io
import itertools
import json
import os
import threading

import pytest
from estimator_container.data import DataError, Dataset, PipeDataset
from estimator_container.data.reading.formats import stream_tar
from estimator_container.data.reading.shards import index_of

from tests.unit.container.training.data.folders import flat, number, tar_of


@pytest.fixture
def channel(tmp_path, monkeypatch):
    """A channel whose pipes bring 10 samples in two shards, as the agent feeds them: one epoch after the other."""
    settings = {"train": {"TrainingInputMode": "Pipe", "S3DistributionType": "FullyReplicated"}}
    monkeypatch.setenv("SM_INPUT_DATA_CONFIG", json.dumps(settings))
    monkeypatch.setenv("SM_CHANNEL_TRAIN", str(tmp_path / "train"))
    begun = itertools.count()

    def begin():
        folder = tmp_path / str(next(begun))  # a feeder of before may still be busy with its pipes
        folder.mkdir()
        monkeypatch.setenv("SM_CHANNEL_TRAIN", str(folder / "train"))

        def feed():
            for epoch in range(4):
                if epoch:
                    (folder / f"train_{epoch - 1}").unlink()
                try:
                    with (folder / f"train_{epoch}").open("wb") as pipe:
                        os.mkfifo(folder / f"train_{epoch + 1}")
                        for shard in range(2):
                            tar_of(folder / "draft.tar", content(epoch, shard))
                            pipe.write((folder / "draft.tar").read_bytes())
                except BrokenPipeError:
                    pass

        os.mkfifo(folder / "train_0")
        threading.Thread(target=feed, daemon=True).start()

    return begin


def content(epoch, shard):
    return [(f"{each}", {"txt": str(100 * epoch + each).encode()}) for each in range(5 * shard, 5 * shard + 5)]


def opened(**options):
    return PipeDataset("train", **{"batch_size": 3, "decode": number, **options})


def test_epochs_come_through_their_pipes(channel):
    channel()
    data = opened()
    assert [list(data) for _ in data.epochs(2)] == [
        [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]],
        [[100, 101, 102], [103, 104, 105], [106, 107, 108], [109]],
    ]


@pytest.mark.parametrize("taken", [0, 1, 4, 5])
def test_another_attempt_reads_from_the_first_pipe_and_goes_on_where_it_was(channel, taken):
    channel()
    data = opened()
    whole = []
    for _ in data.epochs(2):
        for batch in data:
            whole.append((batch, data.state_dict()))
    state = json.loads(json.dumps(whole[taken - 1][1])) if taken else opened().state_dict()
    channel()
    again = opened()
    again.load_state_dict(state)
    rest = [batch for _ in again.epochs(2) for batch in again]
    assert rest == [batch for batch, _ in whole[taken:]]


def test_ranks_on_several_hosts_take_turns(channel, monkeypatch):
    found = []
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "3")
        channel()
        found.append(flat(opened()))
    assert found == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]


def test_what_a_pipe_cannot_do_is_said(channel, monkeypatch):
    with pytest.raises(DataError, match="the position was kept with world_size 2, but it is 1 now"):
        opened().load_state_dict({"version": 1, "epoch": 0, "step": 1, "world_size": 2, "batch_size": 3})
    for state in (None, {}, {"version": 1, "step": "x"}, {"version": 1, "step": 1, "world_size": 1, "batch_size": 3}):
        with pytest.raises(DataError, match=r"this is no position in a pipe \(.+\): give what state_dict\(\) returned"):
            opened().load_state_dict(state)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(DataError, match="a pipe, which has one reader on each host, but this host has several ranks"):
        opened()
    monkeypatch.setenv("SM_INPUT_DATA_CONFIG", "{}")
    with pytest.raises(DataError, match=r"the channel 'train' is not in pipe mode: use Dataset\('train', …\)"):
        opened()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch_size": 0}, "batch_size is 0: give a whole number from 1 on"),
        ({"batch_size": "32"}, "batch_size is '32': give a whole number from 1 on"),
        ({"prefetch": "8"}, "prefetch is '8': give a whole number from 1 on"),
        ({"memory": None}, "memory is None: give a whole number from 1 on"),
        ({"records": "tar"}, "records is 'tar': give a function, or leave it out"),
    ],
)
def test_a_wrong_argument_is_said(channel, options, sentence):
    with pytest.raises(DataError, match=sentence):
        opened(**options)


def test_a_pipe_of_something_else_is_said(channel, monkeypatch, tmp_path):
    channel()

    def not_tar(pipe):
        from estimator_container.data.reading.formats import stream_tar

        return stream_tar(io.BytesIO(b"not a tar" * 100))

    with pytest.raises(DataError, match="what the pipe brings is not a row of tar files"):
        list(opened(records=not_tar))


@pytest.mark.parametrize("tail", [b"", b"\n"])
@pytest.mark.parametrize("shards", [1, 5_000])
def test_the_list_that_packing_writes_comes_first_and_is_no_shard(tmp_path, shards, tail):
    tar_of(tmp_path / "0.tar", content(0, 0))
    names = [f"shard-{each:06}.tar" for each in range(shards)]
    listed = index_of(names, [5] * shards, [10240] * shards) + tail
    brought = io.BytesIO(listed + (tmp_path / "0.tar").read_bytes())
    assert [number(sample) for sample in stream_tar(brought)] == [0, 1, 2, 3, 4]


def test_a_list_behind_a_shard_and_half_a_list_are_said(tmp_path):
    tar_of(tmp_path / "0.tar", content(0, 0))
    listed = index_of(["0.tar"], [5], [10240])
    with pytest.raises(DataError, match="index.json comes behind a shard, so name the shards to come behind it"):
        list(stream_tar(io.BytesIO((tmp_path / "0.tar").read_bytes() + listed + bytes(1024))))
    with pytest.raises(DataError, match="the pipe ends in the middle of the list of shards"):
        list(stream_tar(io.BytesIO(listed[:-5])))


def test_a_piped_channel_is_no_data_set(channel):
    with pytest.raises(DataError, match=r"the channel 'train' is in pipe mode: use PipeDataset\('train', …\)"):
        Dataset("train", batch_size=3)
