"""What a task of Spark does on its executor, which has nothing of ours: write rows as Parquet files.

So Spark brings this module itself, pickled, and it imports only the standard library and pyarrow.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

GROUP_ROWS = 65536
"""The most rows of a row group."""
TOLD = "shard int, rows long, failed string"
"""What `writer` gives, in Spark's words: how many rows a file has, or why one could not be written."""
DRAFTS = ".drafts"
"""At the end of the name of the folder that has files which are not whole yet, beside that of the others."""
_FILE = "file://"


def name_of(shard: int, count: int) -> str:
    """The name of a file among so many.

    >>> name_of(0, 4)
    'part-00000-of-00004.parquet'
    """
    return f"part-{shard:05}-of-{count:05}.parquet"


def group_sizes(rows: int, processes: int) -> list[int]:
    """How many rows each row group of a file has: as many groups for each process, which differ by one row at most.

    >>> group_sizes(7, 2), group_sizes(65536 * 2 + 2, 2)
    ([4, 3], [32769, 32769, 32768, 32768])
    """
    count = processes * max(1, -(-rows // (processes * GROUP_ROWS)))
    return [rows // count + (number < rows % count) for number in range(count)]


def writer(uri: str, rows: Sequence[int], processes: int, column: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """A function for `DataFrame.mapInArrow`, which writes each row to the file whose number is in a column.

    `rows` are those of each file, as the driver has counted them. What fails is told, and not raised: Spark would try
    again.
    """

    def write(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        files: dict[int, ShardFile] = {}
        told: list[tuple[int, int, str]] = []
        try:
            for batch in batches:
                table = pa.Table.from_batches([batch])
                numbers, table = table.column(column), table.drop_columns([column])
                for shard in pc.unique(numbers).to_pylist():
                    if shard not in files:
                        place = f"{uri}/{name_of(shard, len(rows))}"
                        files[shard] = ShardFile(place, table.schema, group_sizes(rows[shard], processes))
                    files[shard].add(table.filter(pc.equal(numbers, shard)))
            told = [(shard, file.finish(), "") for shard, file in files.items()]
        except (OSError, ImportError, pa.ArrowException) as error:  # not every pyarrow has S3
            told = [(-1, 0, f"{socket.gethostname()}: {error}")]
        finally:
            for file in files.values():
                file.close()
        schema = pa.schema([("shard", pa.int32()), ("rows", pa.int64()), ("failed", pa.string())])
        columns = [list(values) for values in zip(*told)] or [[], [], []]
        yield pa.RecordBatch.from_arrays([pa.array(v, f.type) for v, f in zip(columns, schema)], schema=schema)

    return write


class ShardFile:
    """One file, which is at its place when it is whole."""

    def __init__(self, place: str, schema: Any, groups: Sequence[int]) -> None:  # noqa: ANN401 - of pyarrow
        """Raises OSError."""
        import pyarrow.parquet as pq

        self._place = place
        self._groups = list(groups)
        self._waiting: Any = schema.empty_table()
        self._rows = 0
        folder = os.path.dirname(place.removeprefix(_FILE)) + DRAFTS if place.startswith(_FILE) else None  # noqa: PTH120
        descriptor, self._draft = tempfile.mkstemp(prefix="part-", dir=folder)
        os.close(descriptor)
        self._writer: Any = pq.ParquetWriter(self._draft, schema)

    def add(self, rows: Any) -> None:  # noqa: ANN401 - a Table
        """Write all groups that are whole with these rows."""
        import pyarrow as pa

        self._rows += rows.num_rows
        self._waiting = pa.concat_tables([self._waiting, rows])
        while self._groups and self._waiting.num_rows >= self._groups[0]:
            size = self._groups.pop(0)
            self._writer.write_table(self._waiting.slice(0, size), row_group_size=size)
            self._waiting = self._waiting.slice(size)

    def finish(self) -> int:
        """Write the rest, and put the file at its place. Returns how many rows it has. Raises OSError."""
        if self._waiting.num_rows:
            self._writer.write_table(self._waiting)
        self._writer.close()
        if self._place.startswith(_FILE):
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(self._draft, 0o666 & ~mask)  # noqa: PTH101
            os.replace(self._draft, self._place.removeprefix(_FILE))  # noqa: PTH105
        else:
            _put(self._draft, self._place)
        return self._rows

    def close(self) -> None:
        """Leave nothing but the file."""
        with contextlib.suppress(Exception):
            self._writer.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._draft)  # noqa: PTH108


def _put(draft: str, place: str) -> None:
    """Put a file into S3, with the settings that AWS's own programs take. Raises OSError."""
    import shutil

    from pyarrow import fs

    # Else AWS's client sends sums behind the data, which stores of others refuse, with Ceph's "MissingContentLength".
    os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    store = fs.S3FileSystem(endpoint_override=endpoint, region=region)
    with open(draft, "rb") as file, store.open_output_stream(place.partition("://")[2]) as stream:  # noqa: PTH123
        shutil.copyfileobj(file, stream, 1 << 22)
