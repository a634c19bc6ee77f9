"""What Horovod is built with for a PyTorch with CUDA, as far as it goes without building."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "container" / "horovod"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(FOLDER))
    import build_horovod
    import nccl


@pytest.fixture
def torch_of(tmp_path, monkeypatch):
    """Makes PyTorch one that says this of its CUDA."""

    def be(cuda):
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").touch()
        (tmp_path / "torch" / "version.py").write_text(f"cuda: Optional[str] = {cuda!r}\nhip: Optional[str] = None\n")
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        monkeypatch.syspath_prepend(tmp_path)

    return be


def test_for_a_pytorch_with_cuda_it_is_built_with_nccl_of_that_cuda(torch_of, monkeypatch):
    torch_of("13.0")
    monkeypatch.setattr(build_horovod, "installed", lambda *names: "2.13.0" if "torch" in names else None)
    target = build_horovod.target_of_this_interpreter("pip")
    assert (target.cuda, target.key.rpartition("-mpi-")[2]) == ("13.0", "pip-nccl-cuda-13.0")


def test_tensorflow_beside_a_pytorch_with_cuda_is_refused_in_a_sentence(torch_of, monkeypatch):
    torch_of("13.0")
    monkeypatch.setattr(build_horovod, "installed", lambda *names: "2.21.0")
    with pytest.raises(build_horovod.BuildError, match=r"TensorFlow beside a PyTorch with CUDA 13\.0.*: use an env"):
        build_horovod.target_of_this_interpreter("pip")


def test_a_pytorch_with_an_older_cuda_is_refused_in_a_sentence(torch_of, monkeypatch):
    torch_of("12.8")
    monkeypatch.setattr(build_horovod, "installed", lambda *names: "2.13.0" if "torch" in names else None)
    with pytest.raises(build_horovod.BuildError, match=r"a PyTorch with CUDA 12\.8, and .* for CUDA 13 alone: .*torch"):
        build_horovod.target_of_this_interpreter("pip")


def test_for_a_pytorch_without_cuda_it_is_built_without(torch_of, monkeypatch):
    torch_of(None)
    monkeypatch.setattr(build_horovod, "installed", lambda *names: "2.13.0+cpu" if "torch" in names else None)
    target = build_horovod.target_of_this_interpreter("pip")
    assert target.cuda is None and "nccl" not in target.key


def test_what_is_installed_to_compile_is_gone_afterwards_and_what_was_there_stays(tmp_path, monkeypatch):
    for name in ("nvidia/cu13/bin", "nvidia/cu13/lib", "nvidia/nccl/lib", "nvidia_cuda_nvcc-13.0.88.dist-info"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "nvidia_cuda_nvcc-13.0.88.dist-info" / "METADATA").write_text("Name: nvidia-cuda-nvcc\n")
    monkeypatch.syspath_prepend(tmp_path)
    calls = []
    with nccl.compiler("13.0", tmp_path / "scratch", lambda *words: calls.append(words)) as folder:
        assert (folder / "bin").readlink() == tmp_path / "nvidia/cu13/bin"
        assert [words[0] for words in calls] == ["install"]
    (_, *installed), (_, _, *removed) = calls
    assert removed == ["nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl"]
    assert installed == [f"{name}==13.0.*" for name in removed]


def test_the_compiler_and_nccl_are_laid_out_as_cmake_looks_for_them(tmp_path):
    nvidia = tmp_path / "nvidia"
    for name in ("cu13/bin", "cu13/include", "cu13/nvvm", "cu13/lib", "nccl/lib", "nccl/include"):
        (nvidia / name).mkdir(parents=True)
    for name in ("cu13/bin/nvcc", "cu13/lib/libcudart.so.13", "cu13/lib/libcudart_static.a", "nccl/lib/libnccl.so.2"):
        (nvidia / name).write_text(name)
    cuda = nccl.toolkit(nvidia, "13.0", tmp_path / "scratch")
    found = {name: (cuda / name).read_text() for name in ("bin/nvcc", "lib64/libcudart.so", "lib64/libnccl.so")}
    assert found == {
        "bin/nvcc": "cu13/bin/nvcc",
        "lib64/libcudart.so": "cu13/lib/libcudart.so.13",
        "lib64/libnccl.so": "nccl/lib/libnccl.so.2",
    }
    told = nccl.environment(cuda, "/usr/bin")
    assert (told["HOROVOD_NCCL_LIB"], told["LIBRARY_PATH"]) == (str(cuda / "lib64"), str(cuda / "lib64"))
    assert told["PATH"] == f"{cuda / 'bin'}:/usr/bin"
