"""A store that is away for longer than any call to it is tried: K7, at its full length."""

from __future__ import annotations

import socket
import threading
import time
import uuid

from estimator_container.agents.checkpoints.agent import STORE_SECONDS
from estimator_container.agents.checkpoints.restore import restore
from estimator_container.storage import open_store

from estimator_sdk import Estimator
from tests.conformance.jobs import events, tell, wait_until_up
from tests.stores.fault_proxy import FaultProxy
from tests.stores.servers import BUCKET
from tests.waiting import SECONDS, wait_for

AWAY_SECONDS = STORE_SECONDS + 5.0
BACK_SECONDS = 30.0
TRAINS = """
import os, pathlib, sys, time
checkpoints = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
data = pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"])
print("up", flush=True)
step = 0
while not (data / "end").exists():
    step += 1
    (checkpoints / ".draft").write_text(str(step))
    (checkpoints / ".draft").rename(checkpoints / "model")
    print("step", step, flush=True)
    time.sleep(0.5)
"""


def test_a_store_that_is_away_for_more_than_a_minute_delays_checkpoints_and_nothing_else(
    proxy, localstack_server, tmp_path, monkeypatch
):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text(TRAINS)
    uri = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    where = {"source_dir": str(tmp_path / "source"), "backend": "process", "checkpoint_s3_uri": uri}
    job = Estimator(
        entry_point="train.py", distribution={"mpi": {"enabled": True, "processes_per_host": 1}}, **where
    ).fit(wait=False)
    try:
        wait_until_up(job, 1)
        wait_for(lambda: events(job, "checkpoint_published"))
        before = steps(job)
        proxy.close()  # connections are refused from here on
        with socket.socket() as kept:  # or another test may have the port when the store is back
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            kept.bind(("127.0.0.1", proxy.port))
            threading.Event().wait(AWAY_SECONDS)
            assert job.status == "InProgress"
            assert steps(job) - before > AWAY_SECONDS / 2  # two steps a second, on a machine that has much else to do
            lags = [event["seconds"] for event in events(job, "checkpoint_lag")]
            assert lags[-2] < lags[-1] and lags[-1] > AWAY_SECONDS - 10  # those before may be of what has come there
            wait_for(lambda: events(job, "checkpoint_failed"))
            (failed,) = events(job, "checkpoint_failed")
            assert uri in failed["reason"] and f"{STORE_SECONDS:g} s (connection refused)" in failed["reason"]
            published = len(events(job, "checkpoint_published"))
            back = FaultProxy(localstack_server.endpoint, proxy.port)
        came_back = time.monotonic()
        wait_for(lambda: len(events(job, "checkpoint_published")) > published, BACK_SECONDS)
        print(f"published {time.monotonic() - came_back:.1f} s after the store was back")
        tell(job, "end")
        assert job.wait(SECONDS) == "Completed"
    finally:
        job.stop()
    assert job.reason == ""
    last = steps(job)
    restore(open_store(uri), str(tmp_path / "restored"))
    assert (tmp_path / "restored" / "model").read_text() == str(last)
    back.close()


def steps(job) -> int:
    """How far the script has come."""
    return sum(line.data.startswith(b"step") for line in job.logs(stream="stdout"))
