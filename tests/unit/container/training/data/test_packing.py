import json
from pathlib import Path

import pytest
from estimator_container.data import DataError, Dataset, packing
from estimator_container.storage import open_store


@pytest.fixture
def small_files(tmp_path):
    folder = tmp_path / "files"
    for each in range(40):
        (folder / str(each % 3)).mkdir(parents=True, exist_ok=True)
        (folder / str(each % 3) / f"{each}.txt").write_text(f"text {each}" * each)
        (folder / str(each % 3) / f"{each}.cls").write_text(str(each % 3))
    (folder / ".DS_Store").touch()
    return folder


def read(uri):
    data = Dataset(uri, batch_size=7, rank=0, world_size=1)
    return [sample for batch in data for sample in batch]


@pytest.mark.parametrize("seed", [None, 0])
def test_shards_give_the_samples_of_the_files(small_files, tmp_path, seed):
    target = f"file://{tmp_path / 'shards'}"
    packed = packing.pack(str(small_files), target, 2000, seed)
    found = read(target)
    assert packed.samples == len(found) == 40
    assert packed.shards == len(list((tmp_path / "shards").glob("*.tar"))) > 2
    for sample in found:
        files = {each: small_files / f"{sample['__key__']}.{each}" for each in ("txt", "cls")}
        assert sample == {"__key__": sample["__key__"], **{name: path.read_bytes() for name, path in files.items()}}
    keys = [sample["__key__"] for sample in found]
    assert len(set(keys)) == 40
    assert (keys == sorted(keys)) == (seed is None)
    index = json.loads((tmp_path / "shards" / "index.json").read_text())
    packing.index(target, None)
    assert json.loads((tmp_path / "shards" / "index.json").read_text()) == index


def test_shards_that_differ_from_the_files_are_found(small_files, tmp_path, monkeypatch):
    store = type(open_store("file:///"))
    upload = store.upload

    def damaging(self, path, key):
        with Path(path).open("r+b") as file:
            file.seek(512)  # where the first file begins
            file.write(b"!")
        return upload(self, path, key)

    monkeypatch.setattr(store, "upload", damaging)
    with pytest.raises(DataError, match=r"shard-000000.tar at .* does not give the samples that went into it"):
        packing.pack(str(small_files), f"file://{tmp_path / 'shards'}", 1 << 20, None)
    assert not (tmp_path / "shards" / "index.json").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("README", "README belongs to no sample, for its name has nothing"),
        ("0/0.TXT", "are both 'txt' of the sample '0/0'"),
    ],
)
def test_files_that_are_no_samples_are_refused(small_files, tmp_path, name, sentence):
    (small_files / name).touch()
    with pytest.raises(DataError, match=sentence):
        packing.pack(str(small_files), f"file://{tmp_path / 'shards'}", 4000, None)


def test_nothing_is_packed_beside_what_is_there(small_files, tmp_path):
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "x").touch()
    with pytest.raises(DataError, match="has files already, such as 'x': name a folder that is empty"):
        packing.pack(str(small_files), f"file://{tmp_path / 'shards'}", 4000, None)
