"""Machines of a pool whose users have one home, as a network's file system gives it to them."""

from __future__ import annotations

import json
import logging
import tarfile
from pathlib import Path

import pytest

from estimator_sdk import Estimator, Job
from tests.ssh import pool
from tests.waiting import SECONDS, wait_for

MPI = {"mpi": {"enabled": True, "processes_per_host": 1}}
TRAIN = """
import json, os
from mpi4py import MPI
host, channel = os.environ["SM_CURRENT_HOST"], os.environ["SM_CHANNEL_TRAINING"]
print(json.dumps([host, os.uname().nodename, os.path.realpath(channel), open(channel + "/below/one").read()]))
open(os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], host), "w").write(host)
MPI.COMM_WORLD.barrier()
if MPI.COMM_WORLD.rank == 1 and os.environ.get("RESTART") and not os.path.exists("/tmp/began"):
    open("/tmp/began", "w").close()
    os.kill(os.getpid(), 9)
MPI.COMM_WORLD.barrier()
"""
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def made():
    with pool.pool(3, is_shared=True) as made:
        yield made


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    """Run the script on all machines, with a channel of this one."""
    monkeypatch.setenv("PATH", made.path)
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "data" / "below").mkdir(parents=True)
    (tmp_path / "data" / "below" / "one").write_text("1")

    def run(**arguments: object) -> Job:
        job = Estimator(
            entry_point=str(tmp_path / "train.py"), hosts=made.names, instance_count=3, distribution=MPI, **arguments
        ).fit({"training": f"file://{tmp_path / 'data'}"}, wait=False)
        assert job.wait(SECONDS) == "Completed", job.why()
        return job

    return run


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as packed:
        return packed.getnames()


def said(job: Job) -> list[list[str]]:
    return sorted(json.loads(line.data) for line in job.logs(stream="stdout"))


def test_software_and_data_are_copied_once_and_outputs_are_those_of_all(run, made, caplog):
    with caplog.at_level(logging.DEBUG, logger="estimator_sdk"):
        job = run()
    assert sum("copying the software" in record.getMessage() for record in caplog.records) == 1
    ((_, first, place, _), *_) = found = said(job)
    assert first == "host-1"
    assert found == [[f"algo-{number}", f"host-{number}", place, "1"] for number in (1, 2, 3)]
    kept = sorted(job.folder.glob("output/**/output.tar.gz"))
    assert sorted(name for path in kept for name in names_in(path)) == ["algo-1", "algo-2", "algo-3"]
    hosts = made.home("host-1") / ".local/share/estimator-sdk/hosts"  # keepers may outlast the job for a moment
    wait_for(lambda: not list(hosts.glob(f"{job.name}*")))


def test_another_attempt_finds_the_data_where_the_first_one_did(run):
    job = run(restart_policy={"on": ["signal"], "max": 1}, environment={"RESTART": "1"})
    found = said(job)
    assert len(found) == 6
    assert len({(place, data) for _, _, place, data in found}) == 1
