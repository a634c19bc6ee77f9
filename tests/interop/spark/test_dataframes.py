"""DataFrames as channels, which executors write to a folder or to a store that checks signatures, and jobs read."""

from __future__ import annotations

import json
import tarfile
import uuid

import pytest

from estimator_sdk import Estimator, EstimatorError, HorovodRunner, InvalidArgument, JobFailed, TrainingInput
from tests.stores.servers import BUCKET

READS = """
import json, os, pathlib

import pyarrow.parquet
from mpi4py import MPI

(path,) = pathlib.Path(os.environ["SM_CHANNEL_TRAINING"]).iterdir()
file = pyarrow.parquet.ParquetFile(path)
world = MPI.COMM_WORLD
local = int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
groups = range(local, file.num_row_groups, int(os.environ["OMPI_COMM_WORLD_LOCAL_SIZE"]))
read = world.gather(file.read_row_groups(list(groups)).column("id").to_pylist())
if world.Get_rank() == 0:
    pathlib.Path(os.environ["SM_MODEL_DIR"], "read").write_text(json.dumps(read))
"""


@pytest.mark.long
def test_the_rows_of_a_dataframe_are_a_channel_dealt_out_to_hosts_and_ranks(context, pandas, tmp_path):
    from pyarrow import parquet
    from pyspark.sql import SparkSession

    # Spark takes Shard for the name of the column by which rows are dealt out.
    frame = SparkSession(context).range(1003).repartition(5).selectExpr("id", "cast(id as string) as Shard")
    reads = tmp_path / "reads.py"
    reads.write_text(READS)
    estimator = Estimator(
        entry_point=reads,
        backend="spark",
        instance_count=2,
        distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
    )
    rows = TrainingInput.from_dataframe(frame, f"file://{tmp_path}/shared")
    assert not (tmp_path / "shared").exists()
    estimator.plan(rows)
    for _ in range(2):
        job = estimator.fit(rows, logs="none")
        with tarfile.open(job.model_data.removeprefix("file://")) as model:
            read = json.load(model.extractfile("read"))
        assert sorted(each for of_rank in read for each in of_rank) == list(range(1003))
        assert {len(of_rank) for of_rank in read} == {250, 251}
    (files,) = (tmp_path / "shared").iterdir()
    assert sorted(path.name for path in files.iterdir()) == [f"part-0000{n}-of-00002.parquet" for n in range(2)]
    assert all(parquet.read_schema(path).names == ["id", "Shard"] for path in files.iterdir())
    with pytest.raises(
        InvalidArgument, match="was written for 2 hosts with 2 processes each, but this job has 2 with 1"
    ):
        Estimator(entry_point=reads, backend="spark", instance_count=2).fit(rows)
    elsewhere = Estimator(entry_point=reads, distribution=estimator.distribution, instance_count=2)
    assert elsewhere.fit(rows, logs="none").status == "Completed"


@pytest.mark.long
def test_a_dataframe_that_cannot_be_dealt_out_is_refused(context, pandas, tmp_path):
    from pyspark.sql import SparkSession

    session, reads = SparkSession(context), tmp_path / "reads.py"
    reads.write_text(READS)
    estimator = Estimator(entry_point=reads, backend="spark", instance_count=4)
    for count, words in ((0, "is empty, fewer than the 4 processes"), (3, "has 3 rows, fewer than the 4 processes")):
        rows = TrainingInput.from_dataframe(session.range(count), f"file://{tmp_path}/shared")
        with pytest.raises(InvalidArgument, match=words):
            estimator.fit({"train": rows})
    rows = TrainingInput.from_dataframe(session.range(9), f"file://{tmp_path}/shared")
    rows.files.prepare()
    for folder in (tmp_path / "shared").iterdir():
        folder.rmdir()
    (tmp_path / "shared").rmdir()
    (tmp_path / "shared").touch()
    with pytest.raises(InvalidArgument, match="path is file:.*/shared, where no folder can be made: .*; give a folder"):
        estimator.fit({"train": rows})


def takes(df=None):
    """A function that is given something."""


@pytest.mark.long
def test_what_a_dataframe_is_given_to_that_takes_none_says_what_to_do(context, pandas, tmp_path):
    from pyspark.sql import SparkSession

    frame = SparkSession(context).range(9)
    rows = TrainingInput.from_dataframe(frame, f"file://{tmp_path}/shared")
    for given in (rows, frame):
        with pytest.raises(
            InvalidArgument, match=r"^inputs\['train'\] is a DataFrame, .*; write it with .*Estimator\("
        ):
            HorovodRunner(np=2, inputs={"train": given}).run(takes)
    with pytest.raises(
        InvalidArgument, match=r"the variable 'df' of takes\(\) holds a .*; write it with .*from_dataframe"
    ):
        HorovodRunner(np=2).run(takes, df=frame)
    with pytest.raises(
        InvalidArgument, match=r"^inputs is a Spark DataFrame, .*; write TrainingInput.from_dataframe\("
    ):
        Estimator(entry_point=__file__, backend="spark").plan(frame)


@pytest.fixture
def bucket(context, ceph_server, monkeypatch, no_aws):
    """A place of the test's own in a store that checks signatures; the driver and the executors have accounts there."""
    for name, value in {**ceph_server.environment(), "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(context.environment, name, value)  # what spark.executorEnv sets for a session
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.mark.long
def test_executors_write_a_dataframe_to_a_store_from_which_jobs_of_any_kind_read_it(context, pandas, bucket, tmp_path):
    from pyspark.sql import SparkSession

    reads = tmp_path / "reads.py"
    reads.write_text(READS)
    rows = TrainingInput.from_dataframe(SparkSession(context).range(1003).repartition(5), bucket)
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    for backend in ("process", "spark"):
        job = Estimator(entry_point=reads, backend=backend, instance_count=2, distribution=mpi).fit(rows, logs="none")
        with tarfile.open(job.model_data.removeprefix("file://")) as model:
            read = json.load(model.extractfile("read"))
        assert sorted(each for of_rank in read for each in of_rank) == list(range(1003))
        assert {len(of_rank) for of_rank in read} == {250, 251}


WITHOUT = "import sys; sys.modules[{!r}] = None"
"""A `sitecustomize` of executors whose Python has a module no more."""


@pytest.mark.long
def test_what_keeps_executors_from_a_store_is_one_sentence(context, pandas, bucket, tmp_path, monkeypatch):
    from pyspark.sql import SparkSession

    frame, reads = SparkSession(context).range(9), tmp_path / "reads.py"
    reads.write_text(READS)
    estimator = Estimator(entry_point=reads, backend="spark", instance_count=2)

    def refused(path, error, words, **of_executors):
        with monkeypatch.context() as patch:
            for name, value in of_executors.items():
                patch.setitem(context.environment, name, value)
            with pytest.raises(error, match=words) as raised:
                estimator.fit(TrainingInput.from_dataframe(frame, path), logs="none")
        assert "\n" not in str(raised.value)
        assert "a-wrong-secret" not in str(raised.value)

    cannot = "path is s3://{}.*, to which an executor cannot write: .*{}.*; check the bucket's name, and give executors"
    refused(
        bucket,
        InvalidArgument,
        cannot.format(BUCKET, "SIGNATURE_DOES_NOT_MATCH"),
        AWS_SECRET_ACCESS_KEY="a-wrong-secret",
    )
    stranger = {"AWS_ACCESS_KEY_ID": "stranger", "AWS_SECRET_ACCESS_KEY": "stranger-secret"}
    refused(bucket, InvalidArgument, cannot.format(BUCKET, "ACCESS_DENIED"), **stranger)
    refused("s3://no-such-bucket/rows", InvalidArgument, cannot.format("no-such-bucket", "NO_SUCH_BUCKET"))
    for module, error, words in (
        ("pyarrow._s3fs", InvalidArgument, cannot.format(BUCKET, "pyarrow installation is not built with support")),
        ("pyarrow", EstimatorError, "Spark could not write the DataFrame of inputs to s3://.*: .*pyarrow"),
    ):
        folder = tmp_path / module
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(WITHOUT.format(module))
        refused(bucket, error, words, PYTHONPATH=str(folder))


@pytest.mark.long
def test_a_driver_without_the_credentials_of_its_executors_says_what_it_cannot_read(
    context, pandas, bucket, tmp_path, monkeypatch
):
    from pyspark.sql import SparkSession

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-wrong-secret")
    reads = tmp_path / "reads.py"
    reads.write_text(READS)
    rows = TrainingInput.from_dataframe(SparkSession(context).range(9), bucket)
    with pytest.raises(JobFailed, match=f"s3://{BUCKET}/.* refuses the credentials"):
        Estimator(entry_point=reads, backend="spark", instance_count=2).fit(rows, logs="none")
