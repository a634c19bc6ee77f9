"""HorovodRunner and scripts on the executors of a real session, and what Spark may do to them meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest
from estimator_container.agents.checkpoints.restore import restore
from estimator_container.failures.kind import Kind
from estimator_container.storage import open_store

from estimator_sdk import (
    Estimator,
    EstimatorError,
    HorovodRunner,
    InvalidArgument,
    Job,
    JobFailed,
    list_jobs,
)
from estimator_sdk.backends.spark import session
from tests.spark import SLOTS, START_SECONDS, environment, executor_of
from tests.waiting import wait_for, wait_until_gone

ROOT = Path(__file__).parents[3]
REFUSED = [
    ({"instance_type": "ml.m5.large"}, "what a host has is what Spark gives its task; leave it out, or write 'spark'"),
    ({"image_uri": "image"}, "hosts on executors are processes"),
    ({"hosts": ["a"]}, "backend 'spark' has its own"),
    ({"spare_hosts": 1}, "backend 'spark' has no choice of machines"),
    ({"memory": 1}, "backend 'spark' cannot limit hosts"),
]
TRAIN = """
import argparse, json, os, pathlib

from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
epochs = parser.parse_args().epochs
world = MPI.COMM_WORLD
checkpoint = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"], "epoch")
done = int(checkpoint.read_text()) if checkpoint.exists() else 0
seen = world.gather((os.environ["SM_CURRENT_HOST"], done))
for epoch in range(done, epochs):
    print(f"rank {world.Get_rank()} is at epoch {epoch}", flush=True)
if world.Get_rank() == 0:
    checkpoint.write_text(str(epochs))
    pathlib.Path(os.environ["SM_MODEL_DIR"], "seen").write_text(json.dumps(seen))
"""


AGAIN = """
import argparse, os, pathlib, signal, time

parser = argparse.ArgumentParser()
parser.add_argument("--shared", type=pathlib.Path)
shared = parser.parse_args().shared
place = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"], "round")
number = int(place.read_text()) if place.exists() else 0
print("round", number, os.environ["SM_MODEL_DIR"], flush=True)
(shared / os.environ["SM_CURRENT_HOST"]).touch()
if os.environ["SM_CURRENT_HOST"] == "algo-1":
    place.with_name(".draft").write_text(str(number + 1))
    place.with_name(".draft").rename(place)
    while not (shared / "algo-2").exists():
        time.sleep(0.05)
    if number == 0:
        os.kill(os.getpid(), signal.SIGKILL)
"""


class OddRank(Exception):
    """An exception of the user's own."""


def where():
    """What each rank sees, in the order of the ranks."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    print(f"rank {world.Get_rank()} is there")
    folder = Path(os.environ["PYTHONPATH"].partition(os.pathsep)[0]).parent
    secrets = sorted(name for name in os.environ if name.startswith(("PYTHON_WORKER", "PYTHON_UDF", "_PYSPARK")))
    return world.gather((os.environ["SM_CURRENT_HOST"], str(folder), secrets))


def fails_on(rank):
    from mpi4py import MPI

    if MPI.COMM_WORLD.Get_rank() == rank:
        raise OddRank(f"rank {rank} has had enough")
    MPI.COMM_WORLD.Barrier()


def stays(folder):
    """Say what there is, and go on for longer than any test takes."""
    import time

    rank = os.environ["OMPI_COMM_WORLD_RANK"]
    common = Path(os.environ["PYTHONPATH"].partition(os.pathsep)[0]).parent
    draft = Path(folder, f".{rank}")
    draft.write_text(json.dumps({"pid": os.getpid(), "host": os.environ["SM_CURRENT_HOST"], "folder": str(common)}))
    draft.rename(Path(folder, rank))
    time.sleep(3600)


@pytest.fixture
def train(tmp_path):
    """Makes an estimator of `TRAIN` on executors."""
    (tmp_path / "train.py").write_text(TRAIN)

    def made(**arguments):
        return Estimator(entry_point=tmp_path / "train.py", **{"backend": "spark", **arguments})

    return made


def in_the_background(run):
    """What a call raises; the list has it once the thread that is returned has ended."""
    raised = []

    def call():
        try:
            run()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread, raised


def said_by_ranks(folder, count, raised=()):
    """What `stays` has said on each rank, once all have; `raised` is what the call has raised that runs it."""
    places = [folder / str(rank) for rank in range(count)]
    wait_for(lambda: raised or all(place.exists() for place in places), START_SECONDS)
    assert not raised
    return [json.loads(place.read_text()) for place in places]


def leaves_nothing(ranks):
    for rank in ranks:
        wait_until_gone(rank["pid"])
    common = Path(ranks[0]["folder"])
    wait_for(lambda: not list(common.parent.glob(f"{common.name}*")))


def executors(context):
    ids = context._jsc.sc().getExecutorIds()
    return {ids.apply(number) for number in range(ids.size())}


def test_the_tasks_are_a_world_whose_first_rank_returns_its_value(context, capfd):
    seen = HorovodRunner(np=SLOTS, driver_log_verbosity="all").run(where)
    assert [host for host, *_ in seen] == ["algo-1", "algo-1", "algo-2", "algo-2"]
    assert all(secrets == [] for *_, secrets in seen)
    shown = capfd.readouterr().out
    assert all(f"rank {rank} is there" in shown for rank in range(SLOTS))
    assert [job.backend for job in list_jobs()] == ["spark"]
    wait_for(lambda: not list(Path("/tmp").glob(f"{Path(seen[0][1]).name}*")))


def test_the_exception_of_a_rank_is_raised_with_its_verdict(context):
    with pytest.raises(OddRank, match="rank 3 has had enough") as raised:
        HorovodRunner(np=4).run(fails_on, rank=3)
    assert isinstance(raised.value.__cause__, JobFailed)
    verdict = raised.value.__cause__.verdict
    assert (verdict.host, verdict.rank) == ("algo-2", 3)


def test_a_script_runs_with_its_checkpoints_and_leaves_its_model(context, train, tmp_path):
    store = open_store(f"file://{tmp_path}/checkpoints")
    store.write("epoch", b"1")
    job = train(
        backend=None,
        instance_type="spark",
        instance_count=2,
        distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
        hyperparameters={"epochs": 2},
        checkpoint_s3_uri=store.uri,
    ).fit(logs="none")
    assert (job.status, job.backend) == ("Completed", "spark")
    told = {line.data for line in Job.attach(job.name).logs(stream="stdout")}
    assert told == {b"rank %d is at epoch 1\n" % rank for rank in range(SLOTS)}
    with tarfile.open(job.model_data.removeprefix("file://")) as model:
        seen = json.load(model.extractfile("seen"))
    assert seen == [[host, 1] for host in ("algo-1", "algo-1", "algo-2", "algo-2")]
    restore(store, str(tmp_path / "restored"))
    assert (tmp_path / "restored" / "epoch").read_text() == "2"
    wait_for(lambda: not context.statusTracker().getActiveJobsIds())


@pytest.fixture
def conf(context):
    """What Spark itself reads; as it was afterwards."""
    read = context._jsc.sc().conf()
    yield read
    read.remove(session.COMING)
    read.set("spark.dynamicAllocation.enabled", "false")


def test_what_cannot_run_is_said_before_anything_is_submitted(context, conf, train):
    conf.set(session.COMING, "0s")
    with pytest.raises(InvalidArgument, match="np=5 processes need 5 slots .* Spark's executors have 4 now; lower np"):
        HorovodRunner(np=5).run(where)
    conf.set("spark.dynamicAllocation.enabled", "true")
    with pytest.raises(InvalidArgument, match="which Spark refuses while spark.dynamicAllocation.enabled is true"):
        HorovodRunner(np=2).run(where)
    with pytest.raises(InvalidArgument, match="instance_count=2 needs a barrier stage, .*, or choose another backend"):
        train(instance_count=2).plan()
    conf.set("spark.dynamicAllocation.enabled", "false")
    with pytest.raises(InvalidArgument, match="the slots of executors are Spark's; leave it out"):
        HorovodRunner(np=2, queue=True).run(where)
    with pytest.raises(
        InvalidArgument, match="instance_count=5 needs 5 slots for tasks at once, but .* have 4 now; lower"
    ):
        train(instance_count=5).plan()
    of_two = {"mpi": {"enabled": True, "processes_per_host": 2}}
    with pytest.raises(InvalidArgument, match="=3 with processes_per_host=2 needs 3 slots with 2 cores each .* have 2"):
        train(instance_count=3, distribution=of_two).plan()
    for wrong, words in REFUSED:
        with pytest.raises(InvalidArgument, match=words) as raised:
            train(**wrong).plan()
        assert raised.value.argument == next(iter(wrong))
    assert context.statusTracker().getActiveJobsIds() == []


@pytest.mark.long
def test_a_job_that_spark_cancels_is_stopped_and_leaves_nothing_but_its_executors(context, tmp_path):
    before = executors(context)
    thread, raised = in_the_background(lambda: HorovodRunner(np=4).run(stays, folder=str(tmp_path)))
    ranks = said_by_ranks(tmp_path, 4, raised)
    context.cancelAllJobs()
    thread.join()
    (error,) = raised
    assert isinstance(error, EstimatorError) and "Spark has ended the tasks of stays: " in str(error)
    assert "cancelled" in str(error)
    assert [job.status for job in list_jobs()] == ["Stopped"]
    leaves_nothing(ranks)
    java = context._jsc.sc()
    wait_for(lambda: not java.statusTracker().getActiveStageIds())
    assert executors(context) == before


@pytest.mark.long
def test_the_group_of_the_caller_cancels_a_job(context, tmp_path):
    def run():
        context.setJobGroup("a cell", "of a notebook")
        HorovodRunner(np=4).run(stays, folder=str(tmp_path))

    thread, raised = in_the_background(run)
    ranks = said_by_ranks(tmp_path, 4, raised)
    context.cancelJobGroup("a cell")
    thread.join()
    (error,) = raised
    assert isinstance(error, EstimatorError) and "cancelled job group a cell" in str(error)
    leaves_nothing(ranks)


@pytest.mark.long
def test_an_executor_that_is_lost_before_the_job_begins_is_said_in_a_sentence(context, tmp_path, monkeypatch):
    began = tmp_path / "began"
    # No task goes on before the other executor's tasks are there, too.
    monkeypatch.setitem(context.environment, "PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text(
        f"import os, pathlib, time; pathlib.Path({str(began)!r} + str(os.getpid())).touch(); time.sleep(3)"
    )
    thread, raised = in_the_background(lambda: HorovodRunner(np=4).run(stays, folder=str(tmp_path)))
    (python,) = wait_for(lambda: [*tmp_path.glob("began*")][:1], START_SECONDS)
    os.kill(executor_of(int(python.name.removeprefix("began"))), signal.SIGKILL)
    thread.join()
    (error,) = raised
    assert isinstance(error, EstimatorError), error
    assert re.fullmatch(r"Spark has not started the 4 tasks: Executor.*; call it again once Spark has .*", str(error))
    assert list_jobs() == []


@pytest.mark.long
def test_an_executor_that_cannot_have_a_host_is_named_before_there_is_a_job(context, train, tmp_path, monkeypatch):
    monkeypatch.setitem(context.environment, "PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text("import tempfile; tempfile.tempdir = '/nowhere'")
    words = r"^Spark has not started the 2 tasks: an executor cannot have a host, .*127\.0\.0\.1:\d+: .*/nowhere/est-"
    for run in (HorovodRunner(np=2).run, lambda _: train(instance_count=2).fit()):
        with pytest.raises(EstimatorError, match=words):
            run(where)
    assert list_jobs() == []


@pytest.fixture
def no_room(tmp_path):
    """A folder on a disk of its own, which is small."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.long
def test_an_executor_whose_disk_is_full_fails_the_job_and_leaves_nothing(context, tmp_path, no_room, monkeypatch):
    monkeypatch.setitem(context.environment, "TMPDIR", str(no_room))
    script, data = tmp_path / "fills.py", tmp_path / "data"
    script.write_text("import os; open(os.environ['SM_MODEL_DIR'] + '/weights', 'wb').write(bytes(20_000_000))")
    estimator = Estimator(entry_point=script, backend="spark", instance_count=2)
    with pytest.raises(JobFailed, match="the script on algo-. exited with code 1: OSError: .* No space left on device"):
        estimator.fit(logs="none")
    data.write_bytes(bytes(20_000_000))
    with pytest.raises(JobFailed, match=r"algo-. could not be started on 127\.0\.0\.1:.*: .* No space left on device"):
        estimator.fit(f"file://{data}", logs="none")
    wait_for(lambda: not [*no_room.iterdir()])


@pytest.mark.long
def test_executors_with_more_tasks_than_others_are_several_hosts(context, capfd):
    seen = HorovodRunner(np=3).run(where)
    assert [host for host, *_ in seen] == ["algo-1", "algo-2", "algo-3"]
    shown = capfd.readouterr().out
    assert "rank 0 is there" in shown and "rank 1 is there" not in shown


@pytest.mark.long
def test_a_negative_number_stays_on_this_machine(context):
    assert len(HorovodRunner(np=-2).run(where)) == 2
    assert [job.backend for job in list_jobs()] == ["process"]


@pytest.mark.long
def test_an_executor_that_is_lost_is_the_verdict_and_leaves_nothing(context, tmp_path):
    thread, raised = in_the_background(lambda: HorovodRunner(np=4).run(stays, folder=str(tmp_path)))
    ranks = said_by_ranks(tmp_path, 4, raised)
    os.kill(executor_of(ranks[3]["pid"]), signal.SIGKILL)
    thread.join()
    (error,) = raised
    assert isinstance(error, JobFailed), error
    assert (error.verdict.kind, error.verdict.host) == (Kind.HOST_LOST, "algo-2")
    assert "is not connected any more" in error.verdict.message
    leaves_nothing(ranks)


@pytest.mark.long
def test_a_driver_that_is_killed_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    ranks = tmp_path / "ranks"
    ranks.mkdir()
    script = tmp_path / "driver.py"
    script.write_text(
        f"""
from estimator_sdk import HorovodRunner
from tests.interop.spark.test_jobs import stays
from tests.spark import on_loopback

context = on_loopback("local[2]")
HorovodRunner(np=2).run(stays, folder={str(ranks)!r})
"""
    )
    own = {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", **environment(tmp_path)}
    driver = subprocess.Popen([sys.executable, script], env={**os.environ, **own})
    try:
        found = said_by_ranks(ranks, 2)
        (job,) = list_jobs()
    finally:
        driver.kill()
        driver.wait()
    leaves_nothing(found)
    wait_for(lambda: job.status == "Failed")


def that_stays(folder, hosts, **arguments):
    """An estimator whose ranks say in a folder that they are there, and stay."""
    script = folder / "stays.py"
    script.write_text("from tests.interop.spark.test_jobs import stays; import sys; stays(sys.argv[1])")
    return Estimator(
        entry_point=script,
        backend="spark",
        instance_count=hosts,
        distribution={"mpi": {"enabled": True}},
        arguments=[str(folder)],
        environment={"PYTHONPATH": str(ROOT)},
        **arguments,
    )


@pytest.mark.long
def test_a_script_that_spark_cancels_or_the_user_stops_leaves_nothing(context, tmp_path, capfd):
    for end, number in ((lambda job: context.cancelAllJobs(), 1), (lambda job: job.stop(), 2)):
        folder = tmp_path / f"ranks-{number}"
        folder.mkdir()
        estimator = that_stays(folder, 4)
        job = estimator.fit(wait=False)
        ranks = said_by_ranks(folder, 4)
        end(job)
        wait_for(lambda job=job: job.status == "Stopped", START_SECONDS)
        leaves_nothing(ranks)
        wait_for(lambda: not context.statusTracker().getActiveJobsIds())
    assert "Spark has ended the tasks of stays-" in capfd.readouterr().err
    job = estimator.fit(wait=False)
    job.stop()
    wait_for(lambda: job.status == "Stopped", START_SECONDS)
    job.delete()
    wait_for(lambda: not context.statusTracker().getActiveJobsIds(), START_SECONDS)
    told = capfd.readouterr().err
    assert "Traceback" not in told and "Spark has ended" not in told


@pytest.mark.long
def test_a_rank_that_is_killed_begins_again_in_its_task_from_the_checkpoint(context, tmp_path):
    again = tmp_path / "again.py"
    again.write_text(AGAIN)
    job = Estimator(
        entry_point=again,
        backend="spark",
        instance_count=2,
        hyperparameters={"shared": str(tmp_path)},
        restart_policy={"on": ["signal"], "max": 2},
        checkpoint_s3_uri=f"file://{tmp_path}/checkpoints",
    ).fit(logs="none")
    assert (job.status, len(job.attempts)) == ("Completed", 2)
    for host in ("algo-1", "algo-2"):
        told = [line.data for line in job.logs(stream="stdout", host=host)]
        assert [line.split()[:2] for line in told] == [[b"round", b"0"], [b"round", b"1"]]
        assert len({line.split()[2] for line in told}) == 1


@pytest.mark.long
def test_executors_that_are_still_coming_are_waited_for(tmp_path):
    (tmp_path / "train.py").write_text("print('trained')")
    script = tmp_path / "driver.py"
    script.write_text(
        f"""
from estimator_sdk import Estimator
from tests.spark import on_loopback

context = on_loopback("local-cluster[1,2,1024]")
Estimator(entry_point={str(tmp_path / "train.py")!r}, backend="spark", instance_count=2).fit()
context.stop()
"""
    )
    own = {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", **environment(tmp_path)}
    own["ESTIMATOR_HOME"] = str(tmp_path / "home")
    said = subprocess.run(
        [sys.executable, script], env={**os.environ, **own}, capture_output=True, text=True, check=True
    )
    assert said.stdout.count("trained") == 2


@pytest.mark.long
def test_a_script_whose_executor_is_lost_fails_by_its_host(context, tmp_path):
    again = {"on": ["host_lost"], "backoff": 600}  # Spark starts its tasks once
    job = that_stays(tmp_path, 2, restart_policy=again).fit(wait=False)
    ranks = said_by_ranks(tmp_path, 2)
    os.kill(executor_of(ranks[1]["pid"]), signal.SIGKILL)
    why = "not tried again: too few machines are left, . of 2 without .+; start the job"
    with pytest.raises(JobFailed, match=why) as failed:
        job.wait(START_SECONDS)
    assert failed.value.verdict.kind == Kind.HOST_LOST
    leaves_nothing(ranks)
