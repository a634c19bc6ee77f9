"""A Spark DataFrame whose rows become Parquet files, one a host, when a job needs them."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import EstimatorError, InvalidArgument
from ...values import uris
from ...values.naming import shown
from ...values.spark_process import is_frame, words_of
from . import shards

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE = "file://"
_WRITABLE = {
    True: "give a folder that all executors share, or an s3:// URI",
    False: "check the bucket's name, and give executors credentials for it, as spark.executorEnv.AWS_ACCESS_KEY_ID",
}
"""What to do where executors cannot write to a folder, and where not to a bucket."""
_POSITION_BITS = 33
"""Of what `monotonically_increasing_id` gives: the rest is the number of the partition."""


class FrameFiles:
    """The files of one DataFrame, which are written once."""

    def __init__(self, frame: DataFrame, path: str) -> None:
        """Raises InvalidArgument for what is no DataFrame, or no URI."""
        if not is_frame(frame):
            what = f"must be a Spark DataFrame, not {shown(frame)} ({type(frame).__name__})"
            raise InvalidArgument("dataframe", f"dataframe {what}; make one with spark.createDataFrame(…)")
        below = uris.checked("path", path).rstrip("/")
        uris.check_store("path", below)
        self.uri = f"{below}/frame-{os.urandom(6).hex()}"
        """Where they are, or will be."""
        self._frame = frame
        self._written: tuple[int, int] | None = None

    @property
    def is_written(self) -> bool:
        """Whether they are there."""
        return self._written is not None

    def prepare(self) -> None:
        """Make their folder, if it is one of this machine. Raises InvalidArgument."""
        if self.is_written or not self.uri.startswith(_FILE):
            return
        folder = Path(self.uri.removeprefix(_FILE))
        try:
            for each in (folder, Path(f"{folder}{shards.DRAFTS}")):
                if not each.exists():
                    each.mkdir(parents=True)
                    each.chmod(each.parent.stat().st_mode & 0o7777)  # executors may be another user's processes
        except OSError as error:
            what = f"path is {os.path.dirname(self.uri)}, where no folder can be made: {error}"  # noqa: PTH120
            raise InvalidArgument("path", f"{what}; give a folder that you can write to") from None

    def write(self, where: str, hosts: int, processes: int) -> None:
        """Have executors write one file for each host, with as many row groups for each of its processes.

        `where` names the argument. Raises InvalidArgument for fewer rows than processes, for a path to which executors
        cannot write, and for files that were written for another number of them; and EstimatorError.
        """
        if self._written is not None:
            if self._written != (hosts, processes):
                count, each = self._written
                what = f"{where} was written for {count} hosts with {each} processes each"
                hint = "make another TrainingInput.from_dataframe for it"
                raise InvalidArgument(where, f"{what}, but this job has {hosts} with {processes}; {hint}")
            return
        self.prepare()
        try:
            self._write(where, hosts, processes)
        except EstimatorError:
            raise
        except Exception as error:  # what py4j makes of what Spark says
            what = f"Spark could not write the DataFrame of {where} to {self.uri}"
            raise EstimatorError(f"{what}: {words_of(error)}") from error
        self._written = hosts, processes

    def _write(self, where: str, hosts: int, processes: int) -> None:
        _check_packages()
        from pyspark import StorageLevel

        is_kept = self._frame.is_cached
        # What is read twice must be the same both times.
        kept = self._frame if is_kept else self._frame.persist(StorageLevel.DISK_ONLY)
        try:
            starts, total = _starts(kept)
            if total < hosts * processes:
                what = f"the DataFrame of {where} has {total} rows" if total else f"the DataFrame of {where} is empty"
                needed = f"fewer than the {hosts * processes} processes of the job, each of which needs one"
                hint = "give it more rows, or the job fewer processes"
                raise InvalidArgument(where, f"{what}, {needed}; {hint}")
            sizes = [total // hosts + (number < total % hosts) for number in range(hosts)]
            told = _written(kept, starts, self.uri, sizes, processes)
        finally:
            if not is_kept:
                kept.unpersist()
            if self.uri.startswith(_FILE):
                shutil.rmtree(f"{self.uri.removeprefix(_FILE)}{shards.DRAFTS}", ignore_errors=True)
        failed = next((failed for _, _, failed in told if failed), None)
        if failed is not None:
            what = f"path is {os.path.dirname(self.uri)}, to which an executor cannot write: {failed}"  # noqa: PTH120
            raise InvalidArgument("path", f"{what}; {_WRITABLE[self.uri.startswith(_FILE)]}")
        if {shard: rows for shard, rows, _ in told} != dict(enumerate(sizes)):
            what = f"the DataFrame of {where} had other rows when it was read again"
            raise EstimatorError(f"{what}; write it to a table first, and give the DataFrame of that")


def _starts(frame: DataFrame) -> tuple[list[int], int]:
    """The number of the first row of each partition, and that of all rows."""
    from pyspark.sql import functions

    number = functions.shiftright(functions.monotonically_increasing_id(), _POSITION_BITS)
    counted = frame.select(number.cast("int").alias("partition")).groupBy("partition").count().collect()
    counts = {row["partition"]: row["count"] for row in counted}
    starts, total = [], 0
    for partition in range(max(counts, default=-1) + 1):
        starts.append(total)
        total += counts.get(partition, 0)
    return starts, total


def _written(
    frame: DataFrame, starts: list[int], uri: str, sizes: list[int], processes: int
) -> list[tuple[int, int, str]]:
    """Deal the rows out, one to each file in turn, and write them. Returns what `shards.writer` gives."""
    from pyspark import cloudpickle
    from pyspark.sql import functions

    cloudpickle.register_pickle_by_value(shards)  # type: ignore[no-untyped-call]
    column = "shard"
    names = {name.lower() for name in frame.columns}  # most sessions take Shard for the same
    while column in names:
        column += "_"
    own = functions.monotonically_increasing_id()
    first = functions.array(*map(functions.lit, starts))[functions.shiftright(own, _POSITION_BITS).cast("int")]
    number = first + own.bitwiseAND((1 << _POSITION_BITS) - 1)
    dealt = frame.withColumn(column, (number % len(sizes)).cast("int")).repartition(len(sizes), column)
    told: list[Any] = dealt.mapInArrow(shards.writer(uri, sizes, processes, column), shards.TOLD).collect()
    return [(row["shard"], row["rows"], row["failed"]) for row in told]


def _check_packages() -> None:
    """Raises EstimatorError where Spark cannot give rows to Python as it is needed here."""
    for name in ("pandas", "pyarrow"):
        if find_spec(name) is None:
            what = f"TrainingInput.from_dataframe needs {name}, which is not installed here"
            raise EstimatorError(f"{what}; pip install 'pyspark[sql]' on the driver and the executors")
