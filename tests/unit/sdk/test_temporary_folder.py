"""Jobs of users whose temporary folder has a name that sockets and Open MPI cannot carry."""

from __future__ import annotations

import pytest
from estimator_container.runtime import private_folder

from estimator_sdk import Estimator, InvalidArgument
from estimator_sdk.values.home import jobs_folder

SCRIPT = """
import os
from mpi4py import MPI
print(MPI.COMM_WORLD.allreduce(1), os.environ["TMPDIR"])
"""


@pytest.fixture
def estimator(tmp_path, monkeypatch) -> Estimator:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text(SCRIPT)
    world = {"mpi": {"enabled": True}}
    return Estimator(entry_point=f"{tmp_path}/train.py", instance_count=2, distribution=world, backend="process")


@pytest.mark.parametrize("name", ["a b", "a:b", "x" * 100])
def test_a_world_of_two_hosts_assembles_and_the_script_sees_the_folder_of_its_user(
    estimator, tmp_path, monkeypatch, name
):
    (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / name))
    job = estimator.fit(logs="none")
    assert {line.data.decode() for line in job.logs(stream="stdout")} == {f"2 {tmp_path / name}\n"}


def test_without_a_place_for_sockets_the_plan_says_so(estimator, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "a b"))
    monkeypatch.setattr(private_folder, "_PLACES", ("/nowhere",))
    with pytest.raises(InvalidArgument, match="no temporary folder for the sockets of a host"):
        estimator.plan()
    assert not jobs_folder().exists()
