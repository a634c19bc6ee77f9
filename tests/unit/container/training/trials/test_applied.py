"""What a trial changes in a script, and what it leaves out."""

import io
import itertools
import os
import subprocess
import threading
from types import SimpleNamespace

import pytest
from estimator_container.contract.names import DOCTOR
from estimator_container.training import trials
from estimator_container.training.trials import applied, left_out, page_cache, words

from tests.waiting import SECONDS


@pytest.fixture
def trial(monkeypatch):
    return lambda told: monkeypatch.setenv(DOCTOR, told)


def test_a_trial_may_have_several_words_and_numbers(trial):
    trial("look,workers=4")
    assert words.has("look")
    assert words.number("workers") == 4
    assert not words.has("replay")
    assert words.number("prefetch") == 0


def test_batches_that_are_read_ahead_are_the_same(trial):
    trial("prefetch=3")
    assert list(trials.of_iterator(iter(range(100)), "timed_input", None)) == list(range(100))


def test_no_more_is_read_ahead_than_was_said():
    taken = itertools.count()
    given = applied.ahead((next(taken) for _ in range(1000)), 3)
    assert [next(given) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert next(taken) <= 5 + 3 + 2  # one is in the hands of the thread, and one was asked for here


def test_what_reading_raises_is_raised_where_the_batch_is_taken():
    def batches():
        yield 1
        raise ValueError("no such file")

    given = applied.ahead(batches(), 2)
    assert next(given) == 1
    with pytest.raises(ValueError, match="no such file"):
        next(given)


def test_the_first_batch_comes_again_and_again(trial):
    trial("replay")
    read = []
    batches = (read.append(number) or number for number in range(5))
    given = trials.of_iterator(batches, "timed_input", None)
    assert list(itertools.islice(given, 12)) == [0] * 12
    assert read == [0]
    assert list(trials.of_iterator(iter(range(5)), "Dataset", 3)) == [0] * 3
    assert list(trials.of_iterator(iter(()), "Dataset", 3)) == []


def test_only_samples_with_numbers_are_shared_by_workers(trial):
    trial("workers=2")
    numbered = SimpleNamespace(dataset=[1, 2, 3], num_workers=0, prefetch_factor=None)
    numbered.dataset = type("Samples", (), {"__getitem__": None, "__len__": None})()
    streamed = SimpleNamespace(dataset=iter(()), num_workers=0, prefetch_factor=None)
    for loader in (numbered, streamed):
        applied.with_workers(loader)
    assert (numbered.num_workers, numbered.prefetch_factor, streamed.num_workers) == (2, 2, 0)


def test_of_four_checkpoints_one_is_written(trial):
    trial("checkpoint-every=4")
    written = []
    save = left_out.saving(written.append)
    for number in range(1, 13):
        save(number)
    assert written == [4, 8, 12]


def test_checkpoints_are_written_in_the_background_each_after_the_one_before(tmp_path):
    may_write, began = threading.Event(), threading.Event()

    class Disk(io.BytesIO):
        def write(self, data):
            began.set()
            may_write.wait(SECONDS)
            return super().write(data)

    def save(obj, f):
        f.write(obj)

    disk, path = Disk(), tmp_path / "model"
    saving = applied.in_background(save)
    saving(b"first", disk)
    assert began.wait(SECONDS)
    assert disk.getvalue() == b""
    may_write.set()
    saving(b"second", path)
    assert disk.getvalue() == b"first"
    applied._writers[0].join(SECONDS)
    assert path.read_bytes() == b"second"


def in_page_cache(path):
    """How many of a file's bytes the kernel holds, by `fincore` of util-linux."""
    return int(subprocess.check_output(["fincore", "-nbo", "RES", str(path)]))


def test_files_of_channels_are_brought_into_the_page_cache_and_dropped_from_it(monkeypatch, tmp_path, trial):
    folder = tmp_path / "train" / "deep"
    folder.mkdir(parents=True)
    (path := folder / "shard").write_bytes(bytes(4 << 20))
    os.mkfifo(folder / "pipe")
    monkeypatch.setenv("SM_CHANNEL_TRAIN", str(tmp_path / "train"))
    page_cache.drop()
    assert in_page_cache(path) == 0, "the file system of this folder is in memory: set TMPDIR to one on a disk"
    page_cache.warm()
    assert in_page_cache(path) == 4 << 20
