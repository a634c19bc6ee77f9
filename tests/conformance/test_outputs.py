"""O: what a job leaves."""

from __future__ import annotations

import tarfile

import pytest

WRITE = """
import os
host = os.environ["SM_CURRENT_HOST"]
for variable in ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR"):
    folder = os.environ[variable]
    open(os.path.join(folder, f"from-{host}"), "w").write(host)
    os.makedirs(os.path.join(folder, "deep"), exist_ok=True)
    open(os.path.join(folder, "deep", "same"), "w").write(host)
"""


def contents(path):
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        return {each.name: archive.extractfile(each).read().decode() for each in members if each.isfile()}


@pytest.mark.law("O1")
def test_the_archives_are_under_the_output_path(script, tmp_path):
    job = script.run(WRITE, output_path=f"file://{tmp_path / 'out'}")
    folder = tmp_path / "out" / job.name / "output"
    assert job.model_data == f"file://{folder / 'model.tar.gz'}"
    expected = {"from-algo-1": "algo-1", "deep/same": "algo-1"}
    assert contents(folder / "model.tar.gz") == expected
    assert contents(folder / "output.tar.gz") == expected


@pytest.mark.law("O1")
def test_an_empty_model_is_an_empty_archive(script):
    job = script.run("print('no model')")
    assert contents(job.model_data.removeprefix("file://")) == {}


@pytest.mark.law("O1")
def test_a_failed_job_has_output_data_and_no_model(script, tmp_path):
    failed = script.fail(WRITE + "raise SystemExit(1)", output_path=f"file://{tmp_path}")
    folder = tmp_path / failed.job_name / "output"
    assert contents(folder / "output.tar.gz")["from-algo-1"] == "algo-1"
    assert not (folder / "model.tar.gz").exists()


@pytest.mark.law("O1")
def test_without_a_world_the_hosts_make_the_model_together(script):
    job = script.run(WRITE, hosts=2)
    found = contents(job.model_data.removeprefix("file://"))
    assert found == {"from-algo-1": "algo-1", "from-algo-2": "algo-2", "deep/same": "algo-1"}


@pytest.mark.law("O2")
def test_in_a_world_only_the_first_host_makes_the_model(script, tmp_path):
    job = script.run(WRITE, hosts=2, processes=1, output_path=f"file://{tmp_path}")
    folder = tmp_path / job.name / "output"
    assert contents(folder / "model.tar.gz") == {"from-algo-1": "algo-1", "deep/same": "algo-1"}
    assert contents(folder / "hosts" / "algo-2" / "model.tar.gz") == {
        "from-algo-2": "algo-2",
        "deep/same": "algo-2",
    }
    assert contents(folder / "hosts" / "algo-2" / "output.tar.gz")["from-algo-2"] == "algo-2"
