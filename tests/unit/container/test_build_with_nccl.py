"""The program that builds Horovod with NCCL, as far as it goes without building."""

import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "container" / "horovod_nccl" / "build_with_nccl.py"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(PROGRAM.parent))
    import build_with_nccl


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


def test_it_builds_for_the_cuda_of_pytorch_alone(torch_of, monkeypatch):
    torch_of("13.0")
    monkeypatch.setattr(build_with_nccl.build_horovod, "installed", lambda *names: None)
    assert build_with_nccl.cuda_of_torch() == "13.0"
    monkeypatch.setattr(build_with_nccl.build_horovod, "installed", lambda *names: "2.21.0")
    with pytest.raises(build_with_nccl.BuildError, match="has TensorFlow too, which wants another CUDA"):
        build_with_nccl.cuda_of_torch()


def test_a_pytorch_without_cuda_is_said(torch_of, capsys):
    torch_of(None)
    assert build_with_nccl.main([]) == 1
    assert "this PyTorch is a build without CUDA: build_horovod.py builds Horovod for it" in capsys.readouterr().err


def test_the_compiler_and_nccl_are_laid_out_as_cmake_looks_for_them(tmp_path):
    nvidia = tmp_path / "nvidia"
    for name in ("cu13/bin", "cu13/include", "cu13/nvvm", "cu13/lib", "nccl/lib", "nccl/include"):
        (nvidia / name).mkdir(parents=True)
    for name in ("cu13/bin/nvcc", "cu13/lib/libcudart.so.13", "cu13/lib/libcudart_static.a", "nccl/lib/libnccl.so.2"):
        (nvidia / name).write_text(name)
    cuda = build_with_nccl.toolkit(nvidia, "13.0", tmp_path / "scratch")
    found = {name: (cuda / name).read_text() for name in ("bin/nvcc", "lib64/libcudart.so", "lib64/libnccl.so")}
    assert found == {
        "bin/nvcc": "cu13/bin/nvcc",
        "lib64/libcudart.so": "cu13/lib/libcudart.so.13",
        "lib64/libnccl.so": "nccl/lib/libnccl.so.2",
    }
    told = build_with_nccl.environment(nvidia, cuda)
    assert (told["HOROVOD_NCCL_LIB"], told["LIBRARY_PATH"]) == (str(cuda / "lib64"), str(cuda / "lib64"))
