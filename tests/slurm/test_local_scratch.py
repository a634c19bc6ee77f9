"""Channels on the nodes' own disks."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path

import pytest

from estimator_sdk import Estimator, JobFailed, TrainingInput
from estimator_sdk.backends.slurm import queue
from tests.conformance.conftest import Objects
from tests.stores.servers import BUCKET
from tests.waiting import SECONDS, wait_for

from . import cluster
from .configuration import FEW_NODES
from .conftest import SILENCE

FILES = {f"train/{name}": name.encode() * 1000 for name in ("a", "b", "deep/c", "deep/d")}
WHERE = """
import os
folder = os.environ["SM_CHANNEL_TRAIN"]
names = sorted(os.path.relpath(os.path.join(top, name), folder) for top, _, found in os.walk(folder) for name in found)
print(os.environ["SLURMD_NODENAME"], os.path.realpath(folder), os.stat(folder).st_ino, *names, flush=True)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(queue, "ASK_AGAIN_SECONDS", 1.0)


@pytest.fixture
def scratch(tmp_path):
    """A folder that stands for the disk of every node, as `/scratch` does."""
    made = tmp_path / "scratch"
    made.mkdir()
    return made


@pytest.fixture
def store(proxy):
    made = Objects(f"s3://{BUCKET}/{uuid.uuid4().hex}", proxy)
    made.put(FILES)
    proxy.requests.clear()
    return made


def estimator(tmp_path, source=WHERE, options=None, **arguments):
    (tmp_path / "train.py").write_text(source)
    given = {"instance_type": "slurm", "instance_count": 4, "slurm": options, **arguments}
    return Estimator(entry_point=str(tmp_path / "train.py"), **given)


def said(job):
    return [line.data.decode().split() for line in job.logs(stream="stdout")]


def is_empty(folder: Path) -> bool:
    return not [*folder.iterdir()]


@pytest.mark.law("D5")
def test_a_channel_is_fetched_once_a_node_and_shared_by_the_hosts_there(slurm, tmp_path, scratch, store):
    options = {"local_scratch": str(scratch), "hosts_per_node": 2}
    job = estimator(tmp_path, options=options).fit({"train": f"{store.uri}/train"}, logs="none")
    assert Counter(store.gets()) == dict.fromkeys(FILES, 2)
    places = {(node, folder, inode) for node, folder, inode, *names in said(job)}
    assert len(places) == 2 and all(Path(folder).is_relative_to(scratch) for _, folder, _ in places)
    assert [names for _, _, _, *names in said(job)] == [["a", "b", "deep/c", "deep/d"]] * 4
    wait_for(lambda: is_empty(scratch))


@pytest.mark.law("D5")
def test_a_node_fetches_the_shares_of_its_own_hosts_alone(slurm, tmp_path, scratch, store):
    options = {"local_scratch": "OF_NODES", "hosts_per_node": 2}
    asked = estimator(tmp_path, options=options, inherit_environment=["OF_NODES"])
    shares = TrainingInput(f"{store.uri}/train", distribution="ShardedByS3Key")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OF_NODES", str(scratch))
        job = asked.fit({"train": shares}, logs="none")
    assert Counter(store.gets()) == dict.fromkeys(FILES, 1)
    assert sorted(name for _, _, _, *names in said(job) for name in names) == ["a", "b", "deep/c", "deep/d"]
    wait_for(lambda: is_empty(scratch))


def test_a_stop_while_nodes_fetch_leaves_nothing_on_them(slurm, tmp_path, scratch, store):
    store.proxy.choose = lambda request: "stall" if request.target.partition("?")[0].endswith("/b") else None
    options = {"local_scratch": str(scratch)}
    job = estimator(tmp_path, options=options, instance_count=2).fit({"train": f"{store.uri}/train"}, wait=False)
    assert store.proxy.stalled.wait(SECONDS)
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert list(job.logs()) == []
    wait_for(lambda: is_empty(scratch))


def test_a_node_without_the_folder_is_named(slurm, tmp_path, store):
    options = {"local_scratch": "SLURM_TMPDIR"}  # which this cluster does not set
    with pytest.raises(JobFailed, match="a variable that names no folder on n") as failed:
        estimator(tmp_path, options=options).fit({"train": f"{store.uri}/train"}, logs="none")
    assert failed.value.verdict.kind == "channels"


@pytest.mark.law("R2", "D5")
def test_a_host_that_is_started_on_a_spare_node_finds_the_channel_there(tmp_path, scratch, store, monkeypatch):
    go_on = tmp_path / "go on"
    waits = f"{WHERE}\nimport pathlib, time\nwhile not pathlib.Path({str(go_on)!r}).exists():\n    time.sleep(0.1)\n"
    with cluster.cluster(FEW_NODES, slurmd_timeout=300) as own:  # or it could requeue the job first
        monkeypatch.setenv("SLURM_CONF", own.environment()["SLURM_CONF"])
        asked = estimator(
            tmp_path,
            waits,
            {"local_scratch": str(scratch)},
            instance_count=2,
            spare_hosts=1,
            max_retry_attempts=1,
            distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
        )
        job = asked.fit({"train": f"{store.uri}/train"}, wait=False)
        wait_for(lambda: len(said(job)) == 2)
        assert {node for node, *_ in said(job)} == {"n1", "n2"}
        own.kill_node("n2")
        wait_for(lambda: len(said(job)) == 4)
        go_on.touch()
        assert job.wait(timeout=SECONDS) == "Completed", job.why()
        assert [names for _, _, _, *names in said(job)] == [["a", "b", "deep/c", "deep/d"]] * 4
        assert {node for node, *_ in said(job)} == {"n1", "n2", "n3"}
        assert Counter(store.gets()) == dict.fromkeys(FILES, 3)
    cluster.forget_dead_nodes(tmp_path)


def test_while_the_controller_does_not_answer_the_channels_wait_and_no_node_is_blamed(
    tmp_path, scratch, store, srun_that_fails
):
    starts = srun_that_fails("channels", 1, f"Unable to confirm allocation for job 1: {SILENCE}")
    job = estimator(tmp_path, options={"local_scratch": str(scratch)}, instance_count=1)
    job = job.fit({"train": f"{store.uri}/train"}, logs="none")
    assert (starts(), len(job._started.record().attempts), job._started.folder.read_start()) == (2, 1, 0)
    assert [names for _, _, _, *names in said(job)] == [["a", "b", "deep/c", "deep/d"]]
    wait_for(lambda: is_empty(scratch))
