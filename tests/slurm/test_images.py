"""Hosts in an image, by Charliecloud: of what runs images on nodes, what Debian has."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_sdk import Estimator, JobFailed
from estimator_sdk.backends.slurm import queue

MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}
WHERE = """
import os, pathlib
data = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"], "data").read_text()
pathlib.Path(os.environ["SM_MODEL_DIR"], "rank-" + os.environ.get("OMPI_COMM_WORLD_RANK", "none")).touch()
print(os.path.exists("/of-the-image"), os.environ.get("OMPI_COMM_WORLD_SIZE"), data, os.environ["GIVEN"], flush=True)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(queue, "ASK_AGAIN_SECONDS", 1.0)


@pytest.fixture
def image(tmp_path) -> Path:
    """A folder that is an image: with what is installed on this machine, and a file that is nowhere else."""
    folder = tmp_path / "image"
    for name in ("dev", "proc", "sys", "tmp", "etc", "run", "usr", "root", "home", "var", "opt"):
        (folder / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (folder / name).symlink_to(f"usr/{name}")
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (folder / "etc" / name).touch()
    (folder / "of-the-image").touch()
    (folder / str(tmp_path).lstrip("/")).mkdir(parents=True)
    return folder


def estimator(tmp_path, image, **arguments):
    (tmp_path / "train.py").write_text(WHERE)
    options = {"container_runtime": "charliecloud", "container_mounts": ["/usr", "/etc", str(tmp_path)]}
    return Estimator(
        entry_point=str(tmp_path / "train.py"),
        instance_type="slurm",
        instance_count=2,
        image_uri=str(image),
        environment={"GIVEN": "a word"},
        slurm=options,
        **arguments,
    )


@pytest.mark.parametrize("distribution", [None, MPI], ids=["alone", "mpi"])
def test_hosts_run_in_the_image(slurm, tmp_path, image, distribution):
    (tmp_path / "data").write_text("1")
    job = estimator(tmp_path, image, distribution=distribution).fit({"train": f"file://{tmp_path}"}, logs="none")
    ranks = 4 if distribution else 2
    said = [line.data.decode().strip() for line in job.logs(stream="stdout")]
    assert said == [f"True {4 if distribution else None} 1 a word"] * ranks


def test_an_image_that_is_not_there_is_named(slurm, tmp_path):
    (tmp_path / "data").write_text("1")
    with pytest.raises(JobFailed, match="the image /nowhere does not run on n") as failed:
        estimator(tmp_path, "/nowhere").fit({"train": f"file://{tmp_path}"}, logs="none")
    assert failed.value.verdict.kind == "image"
