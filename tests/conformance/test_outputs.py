"""O: what a job leaves."""

from __future__ import annotations

import io
import tarfile

import pytest

from estimator_sdk import Job
from tests.conformance.reports import WRITE
from tests.waiting import SECONDS, wait_for


def contents(path):
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        return {each.name: archive.extractfile(each).read().decode() for each in members if each.isfile()}


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


def unpacked(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = archive.getmembers()
        return {each.name: archive.extractfile(each).read().decode() for each in members if each.isfile()}


@pytest.mark.law("O1")
def test_the_archives_are_in_the_store(script, objects, tmp_path):
    job = script.run(WRITE, output_path=objects.uri)
    assert job.model_data == f"{objects.uri}/{job.name}/output/model.tar.gz"
    expected = {"from-algo-1": "algo-1", "deep/same": "algo-1"}
    found = objects.all(f"{job.name}/output/")
    assert {name: unpacked(data) for name, data in found.items()} == {
        "model.tar.gz": expected,
        "output.tar.gz": expected,
    }
    folder = Job.attach(job.name).download(tmp_path / "downloaded")
    assert {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()} == expected


@pytest.mark.law("O2")
def test_in_a_world_the_outputs_of_other_hosts_are_kept_apart_in_the_store(script, objects):
    job = script.run(WRITE + INTERMEDIATE, hosts=2, processes=1, output_path=objects.uri)
    found = objects.all(f"{job.name}/output/")
    assert sorted(found) == [
        "hosts/algo-2/intermediate/deep/early",
        "hosts/algo-2/model.tar.gz",
        "hosts/algo-2/output.tar.gz",
        "intermediate/deep/early",
        "model.tar.gz",
        "output.tar.gz",
    ]
    assert unpacked(found["model.tar.gz"]) == {"from-algo-1": "algo-1", "deep/same": "algo-1"}
    assert unpacked(found["hosts/algo-2/model.tar.gz"]) == {"from-algo-2": "algo-2", "deep/same": "algo-2"}
    assert found["hosts/algo-2/intermediate/deep/early"] == b"algo-2"


INTERMEDIATE = """
folder = os.environ["SM_OUTPUT_INTERMEDIATE_DIR"]
os.makedirs(os.path.join(folder, "deep"), exist_ok=True)
open(os.path.join(folder, "deep", "early"), "w").write(os.environ["SM_CURRENT_HOST"])
"""
WAIT = """
import sys, time
while not os.path.exists(os.path.join(os.environ["SM_CHANNEL_GO"], "go")):
    time.sleep(0.05)
open(os.path.join(folder, "late"), "w").write("late")
open(os.path.join(folder, "deep", "early"), "w").write("changed")
"""


@pytest.mark.law("O1")
def test_intermediate_output_is_in_the_store_while_the_job_runs(script, objects, tmp_path):
    gate = tmp_path / "gate"
    gate.mkdir()
    estimator = script.estimator("import os\n" + INTERMEDIATE + WAIT, output_path=objects.uri)
    job = estimator.fit({"go": f"file://{gate}"}, wait=False)
    below = f"{job.name}/output/intermediate/"
    wait_for(lambda: objects.all(below) == {"deep/early": b"algo-1"}, otherwise=lambda: objects.all(below))
    assert job.status == "InProgress"
    assert objects.all(below) == {"deep/early": b"algo-1"}
    (gate / "go").touch()
    assert job.wait(SECONDS) == "Completed"
    assert objects.all(below) == {"deep/early": b"changed", "late": b"late"}


LINKS = """
open(os.path.join(folder, "epoch-3"), "w").write("weights")
os.symlink(os.path.join(folder, "epoch-3"), os.path.join(folder, "latest"))
os.symlink("/etc/hostname", os.path.join(folder, "outside"))
"""


@pytest.mark.law("O1")
def test_of_intermediate_links_those_to_a_file_of_the_folder_are_copies_and_others_are_named(script, objects):
    job = script.run("import os\n" + INTERMEDIATE + LINKS, output_path=objects.uri)
    found = objects.all(f"{job.name}/output/intermediate/")
    assert found == {"deep/early": b"algo-1", "epoch-3": b"weights", "latest": b"weights"}
    assert "'intermediate/outside' is a link to '/etc/hostname', outside the folder" in job.reason


@pytest.mark.law("O1")
def test_outputs_that_the_store_refuses_fail_the_job_and_are_not_lost(script, home, localstack_server, s3_objects):
    failed = script.fail(WRITE, output_path="s3://nobody-made-this/out")
    assert failed.verdict.kind == "outputs"
    folder = Job.attach(failed.job_name).folder
    assert "s3://nobody-made-this" in str(failed) and f"the archives are in {folder / 'output'}" in str(failed)
    assert contents(folder / "output" / "model.tar.gz")["from-algo-1"] == "algo-1"
    assert contents(folder / "output" / "output.tar.gz")["from-algo-1"] == "algo-1"
    assert Job.attach(failed.job_name).model_data is None


@pytest.mark.law("O1")
def test_outputs_of_a_job_whose_credentials_have_expired_are_not_lost(script, home, s3_objects):
    def expired(request):
        return "expired" if request.method in ("PUT", "POST") and "/output/" in request.target else None

    s3_objects.proxy.choose = expired
    failed = script.fail(WRITE, output_path=s3_objects.uri)
    assert failed.verdict.kind == "outputs"
    folder = Job.attach(failed.job_name).folder
    assert "ExpiredToken" in str(failed) and "sign in again" in str(failed) and s3_objects.uri in str(failed)
    assert f"the archives are in {folder / 'output'}" in str(failed)
    assert contents(folder / "output" / "model.tar.gz")["from-algo-1"] == "algo-1"


@pytest.mark.law("O1")
def test_a_store_that_is_away_for_a_while_delays_the_outputs_and_no_more(script, s3_objects):
    s3_objects.proxy.choose = lambda request: "cut" if request.number % 3 else None
    job = script.run(WRITE, output_path=s3_objects.uri)
    s3_objects.proxy.choose = lambda request: None
    assert sorted(s3_objects.all(f"{job.name}/output/")) == ["model.tar.gz", "output.tar.gz"]


@pytest.mark.law("O1")
def test_a_failed_job_leaves_its_output_data_in_the_store(script, s3_objects):
    failed = script.fail(WRITE + "raise SystemExit(3)", output_path=s3_objects.uri)
    assert failed.verdict.exit_code == 3
    assert list(s3_objects.all(f"{failed.job_name}/output/")) == ["output.tar.gz"]
