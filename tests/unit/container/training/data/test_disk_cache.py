import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest
from estimator_container.data import Dataset
from estimator_container.data.reading.disk_cache import DiskCache
from estimator_container.data.reading.fetch import fetch_elsewhere
from estimator_container.storage import Object, StorageError, open_store

from tests.unit.container.training.data.folders import NUMBERS, flat, number, numbered
from tests.waiting import SECONDS

SIZE = 1000


@pytest.fixture
def objects(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    for each in range(6):
        (folder / f"{each}.tar").write_bytes(bytes([each]) * SIZE)
    return list(open_store(f"file://{folder}").list())


@pytest.fixture
def cache(tmp_path, objects):
    return DiskCache(f"file://{tmp_path / 'store'}", 2 * SIZE, str(tmp_path / "cache"))


def held(cache):
    return sum(entry.stat().st_size for entry in os.scandir(cache.folder))


def test_what_is_kept_stays_within_its_bound(cache, objects):
    for each in objects:
        with cache.open(each) as file:
            assert file.read() == bytes([int(each.key[0])]) * SIZE
        assert held(cache) <= 2 * SIZE


def test_what_was_opened_longest_ago_goes_first(cache, objects, tmp_path):
    for each in (objects[0], objects[1], objects[0], objects[2]):
        cache.open(each).close()
        os.utime(cache._path(each), (0, int(objects.index(each) != 1)))
    (tmp_path / "store" / "0.tar").unlink()
    cache.open(objects[0]).close()  # is still there, so nothing is brought


def test_what_is_open_stays_even_beyond_the_bound(cache, objects):
    opened = [cache.open(each) for each in objects]
    assert [file.read(1) for file in opened] == [bytes([each]) for each in range(6)]
    assert not cache.bring(objects[0]) or held(cache) >= 6 * SIZE
    for file in opened:
        file.close()
    cache.open(objects[5]).close()
    with cache.open(objects[0]):
        assert held(cache) <= 6 * SIZE


def test_what_comes_next_takes_no_room_from_what_was_not_read_yet(cache, objects):
    assert cache.bring(objects[0])
    assert cache.bring(objects[1])
    assert not cache.bring(objects[2])
    cache.open(objects[0]).close()
    assert cache.bring(objects[2])
    assert held(cache) <= 2 * SIZE


def _read(cache, objects, found):
    found.put(sum(len(cache.open(each).read()) for _ in range(3) for each in objects))


def test_processes_share_it(cache, objects):
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    readers = [context.Process(target=_read, args=(cache, objects, found)) for _ in range(3)]
    for each in readers:
        each.start()
    assert [found.get(timeout=SECONDS) for _ in readers] == [3 * 6 * SIZE] * 3
    for each in readers:
        each.join(SECONDS)
    with cache.open(objects[0]):
        assert held(cache) <= 2 * SIZE


def test_a_store_is_read_with_little_room(tmp_path, monkeypatch):
    """A channel in mode FastFile is read as a store is: each file from its begin to its end, once."""
    monkeypatch.setenv("SM_CHANNEL_TRAIN", numbered(tmp_path / "shards"))
    monkeypatch.setenv("SM_INPUT_DATA_CONFIG", '{"train": {"TrainingInputMode": "FastFile"}}')
    data = Dataset("train", batch_size=4, seed=1, together=2, disk=1, decode=number, cache_folder=str(tmp_path / "c"))
    for _ in data.epochs(2):
        assert sorted(flat(data)) == NUMBERS


ENDS = """
import os, sys
from estimator_container.data.reading.disk_cache import DiskCache
cache = DiskCache("file:///nowhere", 1)
print(cache.folder, flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), 9)
"""


def test_its_folder_ends_with_its_process_or_with_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for how in ("killed", "whole"):
        words = [sys.executable, "-c", ENDS, how]
        folder = Path(subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip())
        assert folder.parent == tmp_path
        assert folder.exists() == (how == "killed")
    assert list(tmp_path.iterdir()) == []


def test_a_process_of_its_own_brings_a_shard_or_says_why_not(objects, tmp_path):
    """As for the workers of a DataLoader, which cannot use the client of an s3 store that was open before."""
    uri = f"file://{tmp_path / 'store'}"
    fetch_elsewhere(uri, objects[3], str(tmp_path / "brought"))
    assert (tmp_path / "brought").read_bytes() == bytes([3]) * SIZE
    with pytest.raises(StorageError, match=r"7\.tar"):
        fetch_elsewhere(uri, Object("7.tar", SIZE, ""), str(tmp_path / "missing"))


BEGINS = """
from estimator_container.data.reading.disk_cache import DiskCache
caches = [DiskCache("file:///nowhere", 1) for _ in range(20)]
import os
assert all(os.path.isdir(cache.folder) for cache in caches)
"""


def test_processes_that_begin_together_leave_each_other_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for each in range(30):
        (tmp_path / f"estimator-data-{os.getuid()}-{each}").mkdir()
        (tmp_path / f"estimator-data-{os.getuid()}-{each}" / ".owner").touch()
    beginning = [subprocess.Popen([sys.executable, "-c", BEGINS]) for _ in range(3)]
    assert [each.wait() for each in beginning] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []
