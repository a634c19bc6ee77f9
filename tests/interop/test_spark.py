"""HorovodRunner in a Spark session: a real one, with two executors of two slots each, all on the loopback network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from estimator_container.failures.kind import Kind

from estimator_sdk import EstimatorError, HorovodRunner, InvalidArgument, JobFailed, list_jobs
from tests.waiting import wait_for, wait_until_gone

ROOT = Path(__file__).parents[2]
EXECUTORS, CORES = 2, 2
SLOTS = EXECUTORS * CORES
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
START_SECONDS = 240.0
"""That three machines of Java and the processes of a world may take where much else runs."""


class OddRank(Exception):
    """An exception of the user's own."""


def where():
    """What each rank sees, in the order of the ranks."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    print(f"rank {world.Get_rank()} is there")
    folder = Path(os.environ["PYTHONPATH"].partition(os.pathsep)[0]).parent
    secrets = sorted(name for name in os.environ if name.startswith("PYTHON_WORKER"))
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


def on_loopback(master):
    """A session that no other machine can reach, of the context alone: what Spark has beside that takes seconds."""
    from pyspark import SparkConf, SparkContext

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.executor.extraJavaOptions": QUICK_JAVA,
    }
    return SparkContext(conf=SparkConf().setMaster(master).setAppName("tests").setAll(settings.items()))


def environment(folder):
    return {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": f"{folder}/work",
        "SPARK_LOCAL_DIRS": f"{folder}/local",
    }


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark import SparkContext

    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(folder).items():
            patch.setenv(name, value)
        patch.setattr(sys, "path", [*sys.path])  # to which Spark adds a folder of its files
        on_interrupt = signal.getsignal(signal.SIGINT)  # Spark sets its own
        context = on_loopback(f"local-cluster[{EXECUTORS},{CORES},1024]")
        yield context
        context.stop()
        signal.signal(signal.SIGINT, on_interrupt)
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        gateway.shutdown()
        gateway.proc.stdin.close()  # by which the machine of Java knows that it is over
        gateway.proc.wait()


@pytest.fixture
def context(spark, tmp_path, monkeypatch):
    """The session, once all its slots are there: a test may have ended an executor."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    java = spark._jsc.sc()
    profile = java.resourceProfileManager().defaultResourceProfile()
    wait_for(lambda: java.maxNumConcurrentTasks(profile) == SLOTS, START_SECONDS)
    return spark


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


def test_what_cannot_run_is_said_before_anything_is_submitted(context, tmp_path):
    with pytest.raises(InvalidArgument, match="np=5 processes need 5 slots .* Spark's executors have 4 now; lower np"):
        HorovodRunner(np=5).run(where)
    conf = context._jsc.sc().conf()
    conf.set("spark.dynamicAllocation.enabled", "true")  # Spark itself reads it there
    try:
        with pytest.raises(InvalidArgument, match="which Spark refuses while spark.dynamicAllocation.enabled is true"):
            HorovodRunner(np=2).run(where)
    finally:
        conf.set("spark.dynamicAllocation.enabled", "false")
    with pytest.raises(InvalidArgument, match="checkpoint_s3_uri is file:.* hosts on Spark keep no checkpoints"):
        HorovodRunner(np=2, checkpoint_s3_uri=f"file://{tmp_path}").run(where)
    with pytest.raises(InvalidArgument, match="the slots of executors are Spark's; leave it out"):
        HorovodRunner(np=2, queue=True).run(where)
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
from tests.interop.test_spark import on_loopback, stays

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


def executor_of(pid):
    """The process of Java above a rank."""
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid
