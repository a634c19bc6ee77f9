import io
import sys

import pytest
from estimator_container.data import DataError, Dataset

from tests.unit.container.training.data.folders import tar_of


def samples(folder, **options):
    data = Dataset(str(folder), batch_size=3, rank=0, world_size=1, **options)
    return [sample for batch in data for sample in batch]


def test_a_tar_shard_has_samples_as_webdataset_has_them(tmp_path):
    tar_of(tmp_path / "0.tar", [("a/1", {"seg.PNG": b"p", "json": b"{}"}), ("a/2", {"json": b"[]"})])
    assert samples(tmp_path) == [
        {"__key__": "a/1", "seg.png": b"p", "json": b"{}"},
        {"__key__": "a/2", "json": b"[]"},
    ]


def test_an_array_has_its_rows(tmp_path):
    numpy = pytest.importorskip("numpy")
    rows = numpy.arange(12.0).reshape(6, 2)
    numpy.save(tmp_path / "0.npy", rows[:4])
    numpy.save(tmp_path / "1.npy", rows[4:])
    assert [list(each) for each in samples(tmp_path)] == rows.tolist()


def test_an_array_without_rows_is_said(tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "0.npy", numpy.array(3.0))
    with pytest.raises(
        DataError, match=r"0.npy has a single value, and no rows: write it again as an array of samples"
    ):
        samples(tmp_path)


def test_batches_become_arrays(tmp_path):
    numpy = pytest.importorskip("numpy")
    from estimator_container.data.for_numpy import array_of, stack

    content = io.BytesIO()
    numpy.save(content, numpy.eye(2))
    tar_of(tmp_path / "0.tar", [(str(key), {"npy": content.getvalue(), "cls": b"7"}) for key in range(2)])

    def decode(sample):
        return {"x": array_of(sample["npy"]), "y": int(sample["cls"]), "key": sample["__key__"]}

    data = Dataset(str(tmp_path), batch_size=2, pattern="*.tar", decode=decode, collate=stack, rank=0, world_size=1)
    (batch,) = data
    assert batch["x"].shape == (2, 2, 2)
    assert [batch["y"].tolist(), batch["key"]] == [[7, 7], ["0", "1"]]


def test_a_library_that_is_not_there_is_said(tmp_path, monkeypatch):
    (tmp_path / "0.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match="need the package pyarrow .*: pip install pyarrow"):
        samples(tmp_path)


def test_parquet_has_its_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"x": [1, 2, 3], "name": ["a", "b", None]})
    parquet.write_table(table, tmp_path / "0.parquet", row_group_size=2)
    expected = [{"x": 1, "name": "a"}, {"x": 2, "name": "b"}, {"x": 3, "name": None}]
    assert samples(tmp_path) == expected
    (tmp_path / "1.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match=r"1.parquet is not a Parquet file .*: write it again"):
        samples(tmp_path)
