import pytest

from estimator_sdk import Estimator, PyTorch, TensorFlow, TrainingInput, job_files
from estimator_sdk.backends.docker.images import catalogue
from estimator_sdk.spec.instances import LOCAL

NEWEST = catalogue.newest("tensorflow")
RISEML = f"""
project: ai_toaster
train:
  framework: tensorflow
  tensorflow:
    version: {NEWEST.version.rpartition(".")[0]}
    horovod:
      workers: WORKERS
  resources:
    gpus: GPUS
    cpus: 2
    mem: 4096
  run:
  - python prepare.py
  - python train.py --lr 0.01
"""


@pytest.fixture
def read(tmp_path):
    def of(text, **options):
        path = tmp_path / "job.yaml"
        path.write_text(text)
        return job_files.read(path, **options)

    return of


def riseml(workers="2", gpus="0"):
    return RISEML.replace("WORKERS", workers).replace("GPUS", gpus)


def mpi(processes):
    return {"mpi": {"enabled": True, "processes_per_host": processes}}


def test_a_file_asks_for_what_it_needs_of_slurm(read, tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").touch()
    plan = read(
        """
entry_point: train.py
instance_type: slurm
slurm: {partition: gpu, gpus_per_node: 4, exclusive: true, sbatch_options: {contiguous: true}}
"""
    ).plan()
    said = {line.removeprefix("#SBATCH ") for line in plan.script.splitlines()}
    assert {"--partition=gpu", "--gpus-per-node=4", "--exclusive", "--contiguous"} <= said


def test_the_keys_of_our_form_are_the_estimator_s_arguments(read, tmp_path):
    (tmp_path / "data").mkdir()
    file = read(
        """
entry_point: run/train.py
source_dir: code
dependencies: [lib]
instance_count: 2
distribution: {mpi: {enabled: true, processes_per_host: 2}}
hyperparameters: {lr: 1e-3, name: on, layers: [64, 10], day: 2020-01-01, octal: 0o17}
environment: {COLOUR: blue}
checkpoint_s3_uri: s3://bucket/checkpoints
max_run: 3600
inputs:
  train: data
  test: {s3_data: s3://bucket/test, distribution: ShardedByS3Key}
"""
    )
    estimator = file.estimator
    assert type(estimator) is Estimator
    assert (estimator.entry_point, estimator.source_dir) == ("run/train.py", str(tmp_path / "code"))
    assert estimator.dependencies == (str(tmp_path / "lib"),)
    assert (estimator.instance_count, estimator.distribution) == (2, mpi(2))
    assert estimator.hyperparameters == {
        "lr": 0.001,
        "name": "on",
        "layers": [64, 10],
        "day": "2020-01-01",
        "octal": 15,
    }
    assert (estimator.environment, estimator.max_run) == ({"COLOUR": "blue"}, 3600)
    assert estimator.checkpoint_s3_uri == "s3://bucket/checkpoints"
    assert file.inputs == {
        "train": f"file://{tmp_path / 'data'}",
        "test": TrainingInput("s3://bucket/test", distribution="ShardedByS3Key"),
    }


def test_an_entry_point_alone_is_a_file_beside_the_job_file(read, tmp_path):
    file = read("entry_point: train.py\ninputs: s3://bucket/data")
    assert file.estimator.entry_point == str(tmp_path / "train.py")
    assert file.inputs == "s3://bucket/data"


@pytest.mark.parametrize(("framework", "cls"), [("tensorflow", TensorFlow), ("pytorch", PyTorch)])
def test_a_framework_chooses_the_estimator(read, framework, cls):
    assert type(read(f"entry_point: a.py\nframework: {framework}").estimator) is cls


def test_an_alias_stands_for_what_its_anchor_is_at(read):
    estimator = read("entry_point: a.py\nenvironment: &e {A: b}\ntags: *e").estimator
    assert estimator.environment == estimator.tags == {"A": "b"}


def test_what_runs_it_can_be_said_again(read):
    assert read("entry_point: a.py\nbackend: docker").estimator.backend == "docker"
    assert read("entry_point: a.py\nbackend: docker", backend="process").estimator.backend == "process"


def test_a_job_begins_with_the_step_that_is_named(read):
    text = "source_dir: .\nsteps: [a, {name: b, run: c}, d]"
    assert [step["name"] for step in read(text, from_step="b").estimator.steps] == ["b", "3"]
    assert [step["run"] for step in read(text, from_step="3").estimator.steps] == ["d"]


def test_a_riseml_yml_comes_to_an_estimator(read, tmp_path):
    file = read(riseml())
    estimator = file.estimator
    assert type(estimator) is TensorFlow
    assert file.inputs is None
    assert estimator.base_job_name == "ai-toaster"
    assert estimator.source_dir == str(tmp_path)
    assert estimator.training_image == NEWEST.name
    assert (estimator.instance_type, estimator.instance_count, estimator.distribution) == ("local", 2, mpi(1))
    assert (estimator.cpus, estimator.memory) == (2, 4.0)
    assert estimator.steps == ("python prepare.py", "python train.py --lr 0.01")


@pytest.mark.parametrize(
    ("workers", "gpus", "hosts", "processes"),
    [
        ("32", "4", 32, 4),
        ("32", "0", 32, 1),
        ("{count: 3, processes: 2}", "0", 3, 2),
        ("{count: 3, processes: 1}", "4", 3, 1),
        ("{count: 3}", "2", 3, 2),
    ],
)
def test_a_worker_has_a_process_for_each_gpu_unless_it_says_how_many(read, workers, gpus, hosts, processes):
    estimator = read(riseml(workers, gpus)).estimator
    assert (estimator.instance_count, estimator.distribution) == (hosts, mpi(processes))
    assert estimator.instance_type == ("local" if gpus == "0" else "local_gpu")
    assert estimator.instance_type in LOCAL


def test_a_riseml_yml_without_horovod_is_one_process_of_one_line(read):
    file = read("project: a\ntrain:\n  framework: tensorflow\n  run: >-\n    python train.py\n    --lr 0.1\n")
    assert (file.estimator.instance_count, file.estimator.distribution) == (1, None)
    assert file.estimator.steps == ("python train.py --lr 0.1",)


def test_what_cannot_be_limited_is_left_out_with_a_warning(read):
    with pytest.warns(UserWarning, match="cpus and mem are for workers that are containers"):
        estimator = read(riseml(), backend="process").estimator
    assert (estimator.cpus, estimator.memory) == (None, None)
