import json
import pickle
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
from estimator_container.data import DataError, Dataset, packing
from estimator_container.data.for_numpy import stack

from tests.unit.container.training.data.folders import NUMBERS, flat, number, numbered, tar_of
from tests.waiting import SECONDS


@pytest.fixture
def folder(tmp_path):
    return numbered(tmp_path / "shards")


def opened(folder, rank=0, world_size=1, **options):
    settings = {"batch_size": 4, "seed": 3, "together": 2, "decode": number, **options}
    return Dataset(folder, rank=rank, world_size=world_size, **settings)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("at_hand", [True, False])
def test_the_ranks_divide_an_epoch_and_make_as_many_steps(folder, seed, at_hand, monkeypatch):
    channel(monkeypatch, folder, "File" if at_hand else "FastFile")
    ranks = [list(opened("train", rank, 3, seed=seed)) for rank in range(3)]
    assert sorted(flat(flat(ranks))) == NUMBERS
    assert len({len(batches) for batches in ranks}) == 1


@pytest.mark.parametrize("taken", range(8))
def test_another_attempt_goes_on_with_the_very_next_batch(folder, taken):
    whole = list(opened(folder))
    data = opened(folder)
    batches = iter(data)
    had = [next(batches) for _ in range(taken)] if taken < 8 else list(batches)
    state = json.loads(json.dumps(data.state_dict()))
    again = opened(folder)
    again.load_state_dict(state)
    assert had + list(again) == (whole if taken < 7 else whole + list(at_epoch(folder, 1)))


def at_epoch(folder, epoch):
    data = opened(folder)
    for each in data.epochs(epoch + 1):
        if each == epoch:
            return data
    raise AssertionError(epoch)


def test_what_was_read_ahead_is_not_counted(folder):
    data = opened(folder, prefetch=100, batch_size=1)
    batches = iter(data)
    next(batches)
    reading = [each for each in threading.enumerate() if each.name == "estimator-data"]
    for each in reading:
        each.join(SECONDS)
    assert data.state_dict()["step"] == 1


def test_a_world_of_another_size_goes_on_where_all_ranks_were(folder):
    had, before = [], [opened(folder, rank, 3) for rank in range(3)]
    for data in before:
        batches = iter(data)
        had += next(batches) + next(batches)
    state = before[0].state_dict()
    assert all(data.state_dict() == state for data in before)
    for rank in range(2):
        data = opened(folder, rank, 2, batch_size=3)
        data.load_state_dict(state)
        had += flat(data)
        assert data.epoch == 1
    assert sorted(had) == NUMBERS


def test_a_batch_without_samples_is_an_empty_list_whatever_makes_batches(folder):
    """Where fewer are left than there are ranks, as after a restart on more hosts."""
    before = opened(folder, 0, 3)
    batches = iter(before)
    next(batches), next(batches)
    ranks = [opened(folder, rank, 12, collate=stack) for rank in range(12)]
    for data in ranks:
        data.load_state_dict(before.state_dict())
    found = [list(data) for data in ranks]
    assert {len(batches) for batches in found} == {1}
    assert sorted(len(batch) for (batch,) in found) == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    assert [batch for (batch,) in found if len(batch) == 0] == [[]] * 3


def test_epochs_go_on_where_they_were(folder):
    data = opened(folder)
    batches = iter(data)
    next(batches)
    assert [(epoch, sum(map(len, data))) for epoch in data.epochs(3)] == [(0, len(NUMBERS) - 3), (1, 25), (2, 25)]
    assert list(data.epochs(3)) == []


def test_a_loop_that_is_left_passes_over_the_rest_of_its_epoch(folder):
    data = opened(folder)
    firsts = []
    for _ in data.epochs(2):
        for batch in data:
            firsts.append(batch)
            break
    assert len(firsts) == 2
    assert data.epoch == 2


def test_readers_side_by_side_have_what_one_has(folder):
    """As the workers of a DataLoader take turns; each gets a copy of the data set."""
    data = opened(folder)
    whole = list(opened(folder))
    next(iter(data))
    copies = [pickle.loads(pickle.dumps(data)).read(worker, 3) for worker in range(3)]
    turns = [batch for _ in range(3) for batch in (next(each, None) for each in copies) if batch is not None]
    assert turns == whole[1:]
    assert list(data.counted(turns)) == turns
    assert data.epoch == 1


def test_a_position_in_other_data_is_refused(folder, tmp_path):
    state = opened(folder).state_dict()
    other = numbered(tmp_path / "other", (5, 1, 9, 3, 8))
    with pytest.raises(DataError, match="kept with shards '.*', but it is '.*' now.*read the same data"):
        opened(other).load_state_dict(state)
    with pytest.raises(DataError, match="kept with seed 3, but it is 4 now"):
        opened(folder, seed=4).load_state_dict(state)
    with pytest.raises(DataError, match="this is no position in a data set"):
        opened(folder).load_state_dict({"epoch": 1})


def test_the_list_of_shards_is_believed_until_a_shard_differs(folder, tmp_path):
    shards = [{"url": f"{each}.tar", "nsamples": size} for each, size in enumerate((5, 1, 9, 3, 6))]
    index = tmp_path / "shards" / "index.json"
    index.write_text(json.dumps({"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": shards}))
    data = opened(folder)
    assert len(data) == 24
    with pytest.raises(DataError, match=r"4.tar in .* has 7 samples, but 6 when they were counted"):
        list(data)
    (tmp_path / "shards" / "4.tar").unlink()
    with pytest.raises(DataError, match=r"index.json lists '4.tar', which is not there: bring all shards"):
        opened(folder)


def damage(shard, at):
    """The header of the second sample, behind which there are others."""
    content = bytearray(shard.read_bytes())
    content[at] ^= 1
    shard.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda folder: (folder / "notes").touch(), "has the file 'notes', whose name tells no format.*pattern="),
        (lambda folder: (folder / "a.npy").touch(), r"has shards of several formats \(npy, tar\)"),
        (lambda folder: [each.unlink() for each in folder.iterdir()], "has no files: check the channel"),
        (lambda folder: (folder / "0.tar").write_bytes(b"x" * 900), "0.tar is not a complete tar file"),
        (lambda folder: damage(folder / "2.tar", 1024), "2.tar is not a complete tar file"),
        (
            lambda folder: (folder / "index.json").write_text("{"),
            "index.json is not a list of shards .*: write it again",
        ),
        (lambda folder: tar_of(folder / "0.tar", [("a", {"X": b"", "x": b""})]), "sample 'a' has two files 'x'"),
    ],
)
def test_data_that_cannot_be_read_is_said(tmp_path, change, sentence):
    folder = numbered(tmp_path / "shards")
    change(tmp_path / "shards")
    with pytest.raises(DataError, match=sentence):
        opened(folder)


def test_a_damaged_header_is_said_by_whatever_a_python_reads_headers(tmp_path, monkeypatch):
    """Since the security releases of 2026 by a function of its own."""
    read = tarfile.TarInfo.frombuf.__func__

    def from_tarfile(cls, tar):
        header = read(cls, tar.fileobj.read(tarfile.BLOCKSIZE), tar.encoding, tar.errors)
        header.offset = tar.fileobj.tell() - tarfile.BLOCKSIZE
        return header._proc_member(tar)

    folder = numbered(tmp_path / "shards")
    damage(tmp_path / "shards" / "2.tar", 1024)
    monkeypatch.setattr(tarfile.TarInfo, "fromtarfile", classmethod(from_tarfile))
    with pytest.raises(DataError, match=r"2\.tar is not a complete tar file"):
        opened(folder)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_file_instead_of_a_folder_is_said(folder, tmp_path, scheme):
    path = tmp_path / "shards" / "0.tar"
    with pytest.raises(DataError, match=f"{path} is a file: give its folder, .*, and for this file alone the pattern"):
        opened(f"{scheme}{path}")


def test_an_unknown_format_is_said_also_where_nothing_is_counted(folder, tmp_path):
    packing.index(f"file://{tmp_path / 'shards'}", None)
    with pytest.raises(DataError, match="there is no format 'csv'"):
        opened(folder, format="csv")


def test_a_file_that_is_hidden_is_no_shard(folder, tmp_path):
    (tmp_path / "shards" / "_SUCCESS").touch()
    (tmp_path / "shards" / ".DS_Store").touch()
    assert len(opened(folder)) == len(NUMBERS)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch_size": 0}, "batch_size is 0: give a whole number from 1 on"),
        ({"rank": 2, "world_size": 2}, "rank is 2 of 2"),
        ({"rank": 0, "world_size": 26}, "has 25 samples, fewer than the 26 ranks"),
        ({"format": "csv"}, "there is no format 'csv': use one of tar, tfrecord"),
        ({"rank": "0", "world_size": "2"}, "rank is '0': give a whole number"),
        ({"rank": 0, "world_size": 2.0}, r"world_size is 2\.0: give a whole number"),
        ({"seed": float("nan")}, "seed is nan: give a whole number"),
        ({"decode": "utf-8"}, "decode is 'utf-8': give a function, or leave it out"),
        ({"collate": 3}, "collate is 3: give a function, or leave it out"),
    ],
)
def test_a_wrong_argument_is_said(folder, options, sentence):
    with pytest.raises(DataError, match=sentence):
        opened(folder, **options)


def test_a_source_that_is_no_name_and_a_count_of_epochs_that_is_no_number_are_said(folder):
    with pytest.raises(DataError, match="source is None: give the name of a channel, a path or a URI"):
        opened(None)
    with pytest.raises(DataError, match="count is '3': give the number of epochs"):
        next(opened(folder).epochs("3"))


def test_a_path_and_numbers_of_numpy_are_good(folder):
    data = opened(Path(folder), seed=np.int64(3), batch_size=25)
    assert list(data) == list(opened(folder, batch_size=25))
    assert json.loads(json.dumps(data.state_dict())) == data.state_dict()


def test_a_cache_folder_that_cannot_be_made_is_said(folder, tmp_path, monkeypatch):
    channel(monkeypatch, folder, "FastFile")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=f"cache_folder is '{tmp_path}/file', which cannot be made: File exists"):
        opened("train", cache_folder=str(tmp_path / "file"))


def channel(monkeypatch, folder, mode="File", distribution="FullyReplicated"):
    monkeypatch.setenv("SM_CHANNEL_TRAIN", folder)
    monkeypatch.setenv("SM_CHANNELS", '["train"]')
    settings = {"TrainingInputMode": mode, "S3DistributionType": distribution}
    monkeypatch.setenv("SM_INPUT_DATA_CONFIG", json.dumps({"train": settings}))


def test_a_rank_finds_its_channel_and_its_world(folder, monkeypatch):
    channel(monkeypatch, folder)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    data = Dataset("train", batch_size=4, decode=number)
    assert (data.rank, data.world_size) == (1, 2)
    assert flat(data) == NUMBERS[12:]
    with pytest.raises(DataError, match=r"there is no channel 'tain' here: the job's channels are \[\"train\"\]"):
        Dataset("tain", batch_size=4)


def test_hosts_with_shares_of_their_own_are_told_that_ranks_divide_the_data(folder, monkeypatch):
    channel(monkeypatch, folder, distribution="ShardedByS3Key")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    with pytest.raises(DataError, match="the channel 'train' is ShardedByS3Key.*leave distribution= out"):
        Dataset("train", batch_size=4)


class Loader:
    """What of torch's DataLoader tells the order of its batches; the real one is tried in tests/interop."""

    def __init__(self, batch_size=None, persistent_workers=False, in_order=True):
        self.num_workers, self.batch_size = 2, batch_size
        self.persistent_workers, self.in_order = persistent_workers, in_order

    def __iter__(self):
        return iter(())


@pytest.mark.parametrize("options", [{"batch_size": 4}, {"persistent_workers": True}, {"in_order": False}])
def test_a_loader_that_would_lose_the_order_is_refused(folder, options):
    data = opened(folder)
    assert list(data.counted(Loader())) == []
    with pytest.raises(DataError, match=r"the DataLoader has .*; write DataLoader\(TorchBatches\(data\)"):
        list(data.counted(Loader(**options)))
