"""What a job on the Docker backend is planned to run in; no engine is asked."""

from types import SimpleNamespace
from unittest.mock import Mock

import docker
import pytest

from estimator_sdk import Estimator, InvalidArgument, JobSpec, PyTorch, TensorFlow
from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images import catalogue


@pytest.fixture(autouse=True)
def an_engine_that_is_not_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(engine, "connect", lambda: None)
    monkeypatch.setattr(engine, "require_room", lambda client, cpus, memory: None)


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").touch()
    return tmp_path / "train.py"


@pytest.mark.parametrize(
    ("distribution", "framework"),
    [
        (None, "mpi"),
        ({"mpi": {"enabled": True}}, "mpi"),
        ({"torch_distributed": {"enabled": True}}, "pytorch"),
        ({"torch_distributed": {"enabled": False}}, "mpi"),
        ({"multi_worker_mirrored_strategy": {"enabled": True}}, "tensorflow"),
    ],
)
def test_without_an_image_it_is_the_one_that_has_what_the_distribution_needs(script, distribution, framework):
    plan = Estimator(entry_point=script, backend="docker", distribution=distribution).plan()
    image = catalogue.newest(framework).name
    assert plan.image == image
    assert f"image         {image}\n" in str(plan)
    assert plan.request["AlgorithmSpecification"]["TrainingImage"] == image


def test_a_document_without_an_image_gets_it_too():
    spec = JobSpec.from_request({"TrainingJobName": "job", "HyperParameters": {"sagemaker_program": "train.py"}})
    assert spec.plan(backend="docker").image == catalogue.MPI.name


@pytest.mark.parametrize("kind", [TensorFlow, PyTorch])
def test_a_gpu_is_not_left_idle_by_a_cpu_build(script, kind):
    image = catalogue.newest(kind._framework).name
    with pytest.raises(
        InvalidArgument,
        match=f"'local_gpu' asks for GPUs, but {image} is for CPUs, .*; use estimator/{kind._framework}:.*-gpu-py311",
    ):
        kind(entry_point=script, backend="docker", instance_type="local_gpu", image_uri=image).plan()


@pytest.mark.parametrize("kind", [TensorFlow, PyTorch])
def test_on_gpus_a_framework_has_cuda(script, kind, monkeypatch):
    monkeypatch.setattr("estimator_container.runtime.machine.gpus", lambda: 2)
    plan = kind(entry_point=script, backend="docker", instance_type="local_gpu").plan()
    assert plan.image == catalogue.newest(kind._framework, for_gpus=True).name
    assert plan.image.endswith("-gpu-py311")


@pytest.mark.parametrize(("instance_type", "for_gpus"), [("ml.g5.12xlarge", True), ("ml.m5.large", False)])
def test_so_has_the_image_of_a_distribution_on_an_instance_type_with_gpus(script, instance_type, for_gpus):
    distribution = {"torch_distributed": {"enabled": True}}
    plan = Estimator(
        entry_point=script, backend="docker", instance_type=instance_type, distribution=distribution
    ).plan()
    assert plan.image == catalogue.newest("pytorch", for_gpus).name


def test_on_gpus_a_job_without_a_framework_has_the_plain_image(script, monkeypatch):
    monkeypatch.setattr("estimator_container.runtime.machine.gpus", lambda: 1)
    assert (
        Estimator(entry_point=script, backend="docker", instance_type="local_gpu").plan().image == "estimator/mpi:py311"
    )


@pytest.mark.parametrize("kind", [TensorFlow, PyTorch])
def test_a_framework_without_a_version_is_the_newest_that_there_is_an_image_of(script, kind):
    newest = catalogue.newest(kind._framework).name
    assert kind(entry_point=script, backend="docker").plan().image == newest
    assert kind(entry_point=script, backend="process").plan().image is None


@pytest.mark.parametrize(
    "error",
    [
        docker.errors.NullResource("Resource ID was not provided"),
        docker.errors.APIError("Bad Request", response=SimpleNamespace(status_code=400)),
        docker.errors.ImageNotFound("No such image"),
        docker.errors.NotFound("page not found", response=SimpleNamespace(status_code=404)),
    ],
    ids=["no name", "what no image can be called", "a name that is not there", "a path"],
)
def test_what_is_not_the_name_of_an_image_is_refused_in_a_sentence(error):
    client = Mock()
    client.images.get.side_effect = error
    with pytest.raises(InvalidArgument, match="is not an image of the Docker engine; choose one of those that"):
        engine.require_image(client, "x y")
    with pytest.raises(InvalidArgument, match="; get it with `docker pull x/y:1`, or choose one of those that"):
        engine.require_image(client, "x/y:1")
