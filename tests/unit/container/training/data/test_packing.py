import json
import os
import tempfile
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


@pytest.mark.parametrize(
    ("name", "make", "sentence"),
    [
        ("a.txt", lambda path: path.symlink_to("/nowhere"), "a.txt is a link to what is not there: bring the file"),
        ("a.txt", os.mkfifo, "a.txt is not a file, but a pipe, a socket or a device"),
        ("self", lambda path: path.symlink_to("."), "self is a link to a folder that it lies in, which has no end"),
    ],
)
def test_what_is_neither_a_file_nor_a_folder_is_refused_before_anything_is_written(
    small_files, tmp_path, name, make, sentence
):
    make(small_files / name)
    with pytest.raises(DataError, match=sentence):
        packing.pack(str(small_files), f"file://{tmp_path / 'shards'}", 4000, None)
    assert not (tmp_path / "shards").exists()


def test_a_link_to_another_folder_is_followed(small_files, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "x.txt").write_text("x")
    (tmp_path / "more" / "x.cls").write_text("1")
    (small_files / "linked").symlink_to(tmp_path / "more")
    assert packing.pack(str(small_files), f"file://{tmp_path / 'shards'}", 1 << 20, None).samples == 41


@pytest.mark.parametrize("below", ["", "shards"])
def test_shards_are_not_written_where_they_would_be_packed_the_next_time(small_files, below):
    with pytest.raises(DataError, match="whose files are to be packed: name a place outside of it"):
        packing.pack(str(small_files), f"file://{small_files / below}", 4000, None)
    assert not list(small_files.rglob("*.tar"))


def test_no_room_for_a_shard_is_said(small_files, tmp_path, monkeypatch):
    full = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - each write finds no space; packing closes it
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", lambda suffix: full)
    with pytest.raises(DataError, match=r"no shard can be made in /dev \(No space left on device\): free some"):
        packing.pack(str(small_files), f"file://{tmp_path / 'shards'}", 4000, None)


def test_what_some_samples_lack_is_said(small_files, tmp_path):
    assert packing.pack(str(small_files), f"file://{tmp_path / 'shards'}", 1 << 20, None).lacking == ""
    (small_files / "0" / "0.cls").unlink()
    told = packing.pack(str(small_files), f"file://{tmp_path / 'others'}", 1 << 20, None).lacking
    assert told == "39 of 40 samples have 'cls', and others, such as '0/0', do not"
