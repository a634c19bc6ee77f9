"""A job file is one more door to the same job: ranks, arguments, outputs and exit code are those of the estimator."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import uuid
from pathlib import Path

import pytest

from estimator_sdk import Job, JobFailed, JobSpec, job_files

RANKS = 4
EXAMPLES = re.findall(
    r"^```yaml\n(.*?)^```", (Path(__file__).parents[2] / "docs" / "job_files.md").read_text(), re.DOTALL | re.MULTILINE
)
REPORT = """
import json, os, pathlib, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
names = ("SM_CURRENT_HOST", "SM_HPS", "SM_CHANNEL_TRAIN", "COLOUR")
seen = {name: os.environ[name] for name in names if name != "SM_CHANNEL_TRAIN"}
seen["train"] = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"], "words").read_text()
print(json.dumps([world.rank, world.size, world.allreduce(world.rank), sys.argv[1:], seen]))
if world.rank == 0:
    pathlib.Path(os.environ["SM_MODEL_DIR"], "model").write_text("a model")
sys.exit(5 if len(sys.argv) > 2 and world.rank == int(sys.argv[2]) else 0)
"""


class Doors:
    """The same job, by each way to say it; each returns the job and its exit code."""

    def __init__(self, folder, where, lines):
        self.folder = folder
        (folder / "source").mkdir()
        (folder / "source" / "report.py").write_text(REPORT)
        (folder / "data").mkdir()
        (folder / "data" / "words").write_text("some words")
        self.arguments = {
            "instance_count": 2,
            "distribution": {"mpi": {"enabled": True, "processes_per_host": 2}},
            "hyperparameters": {"lr": 0.1, "name": "a  b"},
            "environment": {"COLOUR": "blue"},
            "base_job_name": "door",
            "steps": lines,
            **where,
        }

    @property
    def file(self):
        """JSON is YAML."""
        path = self.folder / "job.yaml"
        path.write_text(json.dumps({**self.arguments, "source_dir": "source", "inputs": {"train": "data"}}, indent=1))
        return path

    def estimator(self):
        from estimator_sdk import Estimator

        estimator = Estimator(**self.arguments, source_dir=self.folder / "source")
        return self._ended(estimator.fit({"train": f"file://{self.folder / 'data'}"}, wait=False))

    def python(self):
        return self._ended(job_files.read(self.file).fit(wait=False))

    def document(self):
        spec = JobSpec.from_request(job_files.read(self.file).plan().request)
        return self._ended(spec.fit(backend=self.arguments["backend"], wait=False))

    def command(self):
        name = f"door-{uuid.uuid4().hex}"
        words = ["fit", str(self.file), "--job-name", name, "--logs", "none"]
        done = subprocess.run([sys.executable, "-m", "estimator_sdk", *words], check=False)
        return Job.attach(name), done.returncode

    @staticmethod
    def _ended(job):
        try:
            job.wait()
        except JobFailed as failed:
            return job, failed.verdict.exit_code
        return job, 0


def seen_by(job, out):
    """What each rank has printed, line by line."""
    return [[json.loads(line) for line in out(job, rank=rank).splitlines()] for rank in range(RANKS)]


def test_every_door_gives_the_same_ranks_arguments_outputs_and_exit_code(where, tmp_path, out):
    doors = Doors(
        tmp_path, where, ["python report.py 'one  word'", {"name": "b", "run": "python report.py $LOCAL_RANK"}]
    )
    seen = {"SM_HPS": '{"lr":0.1,"name":"a  b"}', "COLOUR": "blue", "train": "some words"}
    expected = [
        [
            [rank, RANKS, 6, [word], {**seen, "SM_CURRENT_HOST": f"algo-{rank // 2 + 1}"}]
            for word in ("one  word", str(rank % 2))
        ]
        for rank in range(RANKS)
    ]
    for door in (doors.estimator, doors.python, doors.document, doors.command):
        job, exit_code = door()
        assert exit_code == 0, (door.__name__, job.why())
        assert seen_by(job, out) == expected, door.__name__
        with tarfile.open(job.model_data.removeprefix("file://")) as model:
            assert model.extractfile("model").read() == b"a model"


def test_every_door_gives_the_exit_code_of_the_rank_that_failed(where, tmp_path):
    doors = Doors(tmp_path, where, ["true", {"name": "b", "run": "python report.py x 3"}])
    for door in (doors.estimator, doors.python, doors.document, doors.command):
        job, exit_code = door()
        verdict = job.verdict
        assert (exit_code, verdict.rank, verdict.step) == (5, 3, "b"), door.__name__


def test_a_job_begins_with_a_later_step(where, tmp_path, out):
    doors = Doors(tmp_path, where, ["echo one", {"name": "b", "run": "echo two"}, "echo three"])
    job = job_files.read(doors.file, from_step="b").fit(logs="none")
    assert [out(job, rank=rank) for rank in range(RANKS)] == [b"two\nthree\n"] * RANKS


def test_the_example_of_our_form_runs(where, tmp_path, out):
    source = """
import os, pathlib, sys
from mpi4py import MPI
words = pathlib.Path(f"words.{os.environ['RANK']}").read_text().split()
total = MPI.COMM_WORLD.allreduce(len(words))
if MPI.COMM_WORLD.rank == 0:
    pathlib.Path(os.environ["SM_MODEL_DIR"], "result").write_text(f"{total} {sys.argv[1:]}")
"""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words").write_text("three small words")
    (tmp_path / "train.py").write_text(source)
    (tmp_path / "job.yaml").write_text(EXAMPLES[0] + "".join(f"{key}: {value}\n" for key, value in where.items()))
    job = job_files.read(tmp_path / "job.yaml").fit(logs="none")
    assert out(job, rank=0) == b"12 ['--learning-rate', '0.005']"
    assert [step.name for step in job_files.read(tmp_path / "job.yaml").plan().steps] == ["1", "train", "report"]


@pytest.mark.turn("docker")
@pytest.mark.law("W2")
@pytest.mark.filterwarnings("ignore:.*cpus and mem are for workers that are containers")
def test_the_example_of_a_riseml_yml_runs_and_horovod_agrees_with_mpi(backend, with_horovod, tmp_path, out):
    """Its framework is the one that is installed here, or in the image that `with_horovod` has made."""
    prepare = "import os; print('prepared', os.environ['RANK'])"
    train = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.modules["sklearn"] = None  # or Keras imports it for its own wrappers
import horovod.tensorflow as hvd
import tensorflow as tf
hvd.init()
total = hvd.allreduce(tf.constant(float(hvd.rank())), op=hvd.Sum)
places = hvd.local_rank(), hvd.local_size(), hvd.cross_rank()
print(hvd.rank(), hvd.size(), *places, int(total), tf.__version__, *sys.argv[1:])
assert str(hvd.rank()) == os.environ["OMPI_COMM_WORLD_RANK"]
"""
    for name, text in (("prepare.py", prepare), ("train.py", train), ("riseml.yml", EXAMPLES[1])):
        (tmp_path / name).write_text(text)
    file = job_files.read(tmp_path / "riseml.yml", backend=backend)
    plan = file.plan()
    assert (plan.world_size, plan.processes_per_host) == (RANKS, 2)
    assert plan.image == with_horovod.get("image_uri")
    assert (plan.cpus, plan.memory) == ((1, 2.0) if backend == "docker" else (None, None))
    job = file.fit(logs="none")
    assert job.name.startswith("digits-")
    for rank in range(RANKS):
        places = f"{rank % 2} 2 {rank // 2}"
        assert out(job, rank=rank).decode() == f"prepared {rank}\n{rank} 4 {places} 6 2.21.0 --epochs 2\n"
