"""What is said of an image that lacks what a job needs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from estimator_sdk import Estimator, InvalidArgument
from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images import needs
from estimator_sdk.backends.docker.images.look import Inside

FULL = Inside(python=(3, 9, 2), modules=("mpi4py", "pip"), mpirun="mpirun (Open MPI) 4.1.4")
MPI = {"mpi": {"enabled": True}}


@pytest.fixture
def plan_of(tmp_path, monkeypatch):
    """A job's plan, by the files of its code; no engine is asked."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(engine, "connect", lambda: None)

    def planned(files, **arguments):
        for name, content in files.items():
            (tmp_path / "code").mkdir(exist_ok=True)
            (tmp_path / "code" / name).write_text(content)
        made = Estimator(entry_point="train.py", source_dir=tmp_path / "code", backend="docker", **arguments).plan()
        return replace(made, image="vendor/any:1")

    return planned


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        (Inside(), "has no python3 on its PATH, nor a `train` program; add Python 3.9 or newer to the image, or"),
        (
            Inside(python=(3, 8, 20)),
            "has Python 3.8.20, but the toolkit needs 3.9 or newer; put a newer python3 first on",
        ),
        (Inside(python=(2, 7, 18)), "has Python 2.7.18, but"),
    ],
)
def test_a_python_that_cannot_run_the_toolkit_is_named(inside, said):
    with pytest.raises(InvalidArgument, match=re.escape(f"image_uri 'vendor/any:1' {said}")) as refused:
        needs.check_python("vendor/any:1", inside)
    assert "\n" not in str(refused.value)


def test_the_oldest_python_that_can_run_it_is_taken():
    needs.check_python("vendor/any:1", FULL)
    needs.check_python("vendor/any:1", Inside(python=(3, 14, 0)))


@pytest.mark.parametrize(
    ("instance_type", "files", "is_refused"),
    [
        ("local_gpu", {"train.py": "import torch\n"}, True),
        ("local_gpu", {"train.py": "import torch\n", "requirements.txt": "torch\n"}, False),
        ("local_gpu", {"train.py": "import mpi4py\n"}, False),
        ("local", {"train.py": "import torch\n"}, False),
    ],
)
def test_a_framework_without_cuda_is_no_use_to_gpus(plan_of, instance_type, files, is_refused):
    inside = replace(FULL, modules=("mpi4py", "pip", "torch"), without_cuda=("torch",))
    plan = replace(plan_of(files), instance_type=instance_type)
    if not is_refused:
        needs.check(plan, inside)
        return
    with pytest.raises(
        InvalidArgument, match="a build of torch without CUDA, which would leave the GPUs of 'local_gpu' idle; "
    ):
        needs.check(plan, inside)


@pytest.mark.parametrize(
    ("mpirun", "why", "said"),
    [
        ("", "there is none", "cannot run an MPI world: there is none"),
        (
            "mpirun (Open MPI) 5.0.6",
            "",
            "has an mpirun that says 'mpirun (Open MPI) 5.0.6', but MPI worlds are started by",
        ),
        ("HYDRA build details:", "", "has an mpirun that says 'HYDRA build details:'"),
    ],
)
def test_a_world_of_mpi_needs_the_mpirun_that_can_start_it(plan_of, mpirun, why, said):
    inside = replace(FULL, mpirun=mpirun, why_no_mpirun=why)
    with pytest.raises(InvalidArgument, match=re.escape(f"image_uri 'vendor/any:1' {said}")):
        needs.check(plan_of({"train.py": ""}, distribution=MPI), inside)
    needs.check(plan_of({"train.py": ""}, distribution=MPI), FULL)
    needs.check(plan_of({"train.py": ""}), inside)


@pytest.mark.parametrize("line", ["import horovod.torch as hvd", "from horovod import tensorflow", "import\thorovod"])
def test_a_framework_that_the_script_imports_and_the_image_lacks_is_named(plan_of, line):
    said = "has no horovod, which train.py imports; add it to the image, or name it in a requirements.txt beside the"
    plan = plan_of({"train.py": f"import os\n{line}\n"})
    with pytest.raises(InvalidArgument, match=f"image_uri 'vendor/any:1' {said}"):
        needs.check(plan, FULL)
    needs.check(plan, replace(FULL, modules=("horovod",)))


@pytest.mark.parametrize(
    "script",
    [
        "try:\n    import horovod\nexcept ImportError:\n    horovod = None\n",
        "import horovod_like\n",
        "print('import horovod')\n# import horovod\n",
        "from mpi4py import MPI\n",
    ],
)
def test_what_a_script_can_do_without_is_not_asked_for(plan_of, script):
    needs.check(plan_of({"train.py": script}), FULL)


def test_requirements_may_bring_it_and_need_pip(plan_of):
    plan = plan_of({"train.py": "import torch\n", "requirements.txt": "torch\n"})
    needs.check(plan, FULL)
    said = "has no pip to install what requirements.txt names; add pip to the image, or add the packages themselves"
    with pytest.raises(InvalidArgument, match=f"image_uri 'vendor/any:1' {said}"):
        needs.check(plan, replace(FULL, modules=()))
