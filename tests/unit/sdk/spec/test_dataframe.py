"""The Parquet files of a DataFrame, as its executors write them."""

import pytest

from estimator_sdk import InvalidArgument, TrainingInput
from estimator_sdk.spec.training_input import frames, shards


@pytest.mark.parametrize("processes", [1, 3, 8])
@pytest.mark.parametrize("rows", [8, 1000, 65536 * 3 + 1])
def test_all_processes_of_a_host_have_as_many_groups_and_rows(rows, processes):
    sizes = shards.group_sizes(rows, processes)
    of_each = [sizes[number::processes] for number in range(processes)]
    assert sum(sizes) == rows and max(sizes) <= shards.GROUP_ROWS
    assert len({*map(len, of_each)}) == 1
    assert max(map(sum, of_each)) - min(map(sum, of_each)) <= 1


def batches(pyarrow, rows, count):
    """So many rows, each with the number of its file, in two batches."""
    table = pyarrow.table({"x": range(rows), "shard": pyarrow.array([n % count for n in range(rows)], pyarrow.int32())})
    return table.to_batches(max_chunksize=rows // 2 + 1)


def test_each_row_is_in_the_file_of_its_number_and_nothing_else_is_left(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    place, drafts = tmp_path / "frame", tmp_path / f"frame{shards.DRAFTS}"
    place.mkdir()
    drafts.mkdir()
    write = shards.writer(f"file://{place}", [4, 3], 2, "shard")
    told = pyarrow.Table.from_batches(write(batches(pyarrow, 7, 2))).to_pylist()
    assert told == [{"shard": 0, "rows": 4, "failed": ""}, {"shard": 1, "rows": 3, "failed": ""}]
    files = [parquet.ParquetFile(place / shards.name_of(number, 2)) for number in range(2)]
    assert [file.read().to_pydict() for file in files] == [{"x": [0, 2, 4, 6]}, {"x": [1, 3, 5]}]
    groups = [[file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] for file in files]
    assert groups == [[2, 2], [2, 1]]
    assert [*drafts.iterdir()] == [] and len([*place.iterdir()]) == 2
    assert list(pyarrow.Table.from_batches(write(iter(())))["shard"]) == []


def test_a_file_that_cannot_be_written_is_told_and_not_raised(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    write = shards.writer(f"file://{tmp_path}/nowhere", [3], 1, "shard")
    ((told,),) = (each.to_pylist() for each in write(batches(pyarrow, 3, 1)))
    assert told["shard"] == -1 and "No such file or directory" in told["failed"]


def test_only_a_dataframe_can_be_dealt_out(tmp_path):
    with pytest.raises(InvalidArgument, match=r"dataframe must be a Spark DataFrame, not \[1\] \(list\)"):
        TrainingInput.from_dataframe([1], f"file://{tmp_path}")
    assert [*frames(None)] == [*frames({"train": f"file://{tmp_path}"})] == []
