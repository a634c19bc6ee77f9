"""What is said before anything runs where a job asks for GPUs; the machine's GPUs are those that a program lists."""

import pytest
from estimator_container.runtime import machine as machine_itself

from estimator_sdk import Estimator, InvalidArgument, PyTorch, TensorFlow
from tests.unit.container.host.test_gpus import DIVIDED, LISTING

TORCH = "from typing import Optional\n__version__ = '2.13.0'\ncuda: Optional[str] = {}\nhip: Optional[str] = None\n"
TENSORFLOW = "build_info = collections.OrderedDict([('is_cuda_build', {}), ('is_rocm_build', False)])\n"


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Makes this machine one whose GPUs are listed so."""

    def be(listing):
        program = tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{listing}END\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    return be


def planned(kind=Estimator, **arguments):
    return kind(entry_point="train.py", instance_type="local_gpu", backend="process", **arguments).plan()


def shares(plan):
    return [host.environment.get("ESTIMATOR_GPU_SHARE") for host in plan.hosts]


def test_hosts_share_the_gpus_of_the_machine(machine):
    machine(LISTING)
    world = {"mpi": {"enabled": True}}
    one, two = (planned(instance_count=count, distribution=world) for count in (1, 2))
    assert [shares(one), len(one.ranks)] == [["0/1"], 2]
    assert [shares(two), len(two.ranks)] == [["0/2", "1/2"], 2]


def test_the_parts_of_a_divided_gpu_go_to_hosts_of_their_own(machine):
    machine(DIVIDED)
    assert shares(planned(instance_count=2)) == ["0/2", "1/2"]
    with pytest.raises(InvalidArgument, match="would get 2 MIG devices, but CUDA lets a process use only one; use ins"):
        planned()


def test_gpus_that_cannot_be_shared_are_said(machine, monkeypatch):
    machine(LISTING)
    with pytest.raises(InvalidArgument, match="instance_count is 3, but the 2 GPUs of this machine cannot be divided"):
        planned(instance_count=3)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert shares(planned()) == ["0/1"]
    with pytest.raises(InvalidArgument, match="instance_count is 2, but the 1 GPUs"):
        planned(instance_count=2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(InvalidArgument, match="'local_gpu' needs a GPU"):
        planned()


def test_without_a_gpu_nothing_runs(machine, monkeypatch):
    machine("")
    monkeypatch.setattr(machine_itself, "_taken", [0])  # as if the share of this process were none, if there is one
    for visible in ("0", None):
        if visible:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        with pytest.raises(InvalidArgument, match="'local_gpu' needs a GPU, but this machine has none; use 'local'"):
            planned()


@pytest.mark.parametrize(
    ("kind", "file", "text", "without", "with_cuda"),
    [
        (PyTorch, "torch/version.py", TORCH, "None", "'13.0'"),
        (TensorFlow, "tensorflow/python/platform/build_info.py", TENSORFLOW, "False", "True"),
    ],
)
def test_a_build_without_cuda_is_said(machine, tmp_path, monkeypatch, kind, file, text, without, with_cuda):
    machine(LISTING)
    path = tmp_path / "site" / file
    path.parent.mkdir(parents=True)
    (tmp_path / "site" / file.partition("/")[0] / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    path.write_text(text.format(without))
    script = tmp_path / "train.py"
    for imported, estimator in (("", kind), (f"import {file.partition('/')[0]} as framework", Estimator)):
        script.write_text(imported)
        with pytest.raises(InvalidArgument, match="asks for GPUs, but .*, a build without CUDA .*, which would leave"):
            planned(estimator)
    path.write_text(text.format(with_cuda))
    assert planned(kind).instance_type == planned(Estimator).instance_type == "local_gpu"


def test_what_a_plain_estimator_may_yet_install_is_not_judged(machine, tmp_path, monkeypatch):
    machine(LISTING)
    (tmp_path / "site" / "torch").mkdir(parents=True)
    (tmp_path / "site" / "torch" / "__init__.py").touch()
    (tmp_path / "site" / "torch" / "version.py").write_text(TORCH.format("None"))
    monkeypatch.syspath_prepend(tmp_path / "site")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("import torch")
    (tmp_path / "code" / "requirements.txt").write_text("torch")
    estimator = Estimator(
        entry_point="train.py", source_dir=tmp_path / "code", instance_type="local_gpu", backend="process"
    )
    assert estimator.plan().instance_type == "local_gpu"
