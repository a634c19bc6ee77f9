"""What Horovod needs to be built with NCCL, which it has to be for a PyTorch with CUDA.

The compiler is NVIDIA's from PyPI, of the CUDA that PyTorch was built with, and NCCL is the one that came with PyTorch.
So nothing of CUDA has to be installed on the machine, and building needs no GPU.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path

COMPILER = ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl")
CAPABILITIES = "75,80,86,90"
"""Of the GPUs that machine code is made for, from Turing to Hopper; later ones compile it when it is loaded."""


def cuda_of_torch() -> str | None:
    """The version of CUDA that this interpreter's PyTorch is built with; None without PyTorch or without CUDA."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    told = Path(spec.origin).with_name("version.py").read_text()
    found = re.search(r"^cuda\b.*= *'([\d.]+)'", told, re.MULTILINE)
    return found[1] if found else None


@contextlib.contextmanager
def compiler(cuda: str, scratch: Path, pip: Callable[..., None]) -> Iterator[Path]:
    """The folder of a CUDA toolkit, made in `scratch`; what `pip` had to install for it is gone after the block."""
    added = [name for name in COMPILER if not any(distributions(name=name))]
    if added:
        pip("install", *(f"{name}=={cuda}.*" for name in added))
    try:
        yield toolkit(_nvidia(), cuda, scratch)
    finally:
        if added:
            pip("uninstall", "--yes", *added)


def _nvidia() -> Path:
    importlib.invalidate_caches()
    spec = importlib.util.find_spec("nvidia")
    assert spec is not None and spec.submodule_search_locations, "PyTorch depends on packages of it"
    return Path(next(iter(spec.submodule_search_locations)))


def toolkit(nvidia: Path, cuda: str, scratch: Path) -> Path:
    """A folder as CMake expects CUDA's, of links to what pip has installed: it looks for `lib64` and names without
    versions, and finds NCCL there too."""
    installed, nccl = nvidia / f"cu{cuda.partition('.')[0]}", nvidia / "nccl"
    folder = scratch / "cuda"
    libraries = folder / "lib64"
    libraries.mkdir(parents=True)
    for name in ("bin", "include", "nvvm"):
        (folder / name).symlink_to(installed / name)
    (folder / "nccl").symlink_to(nccl)
    for library in ((installed / "lib").iterdir(), (nccl / "lib").iterdir()):
        for file in library:
            for name in {file.name, re.sub(r"\.so\.\d+$", ".so", file.name)}:
                (libraries / name).symlink_to(file)
    return folder


def environment(toolkit: Path, path: str) -> Mapping[str, str]:
    """What Horovod's build is told, whose `PATH` is `path` otherwise.

    The names are those of docs/install.rst and cmake/Modules/FindNCCL.cmake in its sources.
    """
    return {
        "HOROVOD_GPU_OPERATIONS": "NCCL",
        "HOROVOD_CUDA_HOME": str(toolkit),
        "HOROVOD_NCCL_INCLUDE": str(toolkit / "nccl" / "include"),
        "HOROVOD_NCCL_LIB": str(toolkit / "lib64"),
        "HOROVOD_NCCL_LINK": "SHARED",
        "HOROVOD_BUILD_CUDA_CC_LIST": CAPABILITIES,
        "CUDA_HOME": str(toolkit),
        "CUDAToolkit_ROOT": str(toolkit),
        "LIBRARY_PATH": str(toolkit / "lib64"),  # of the linker that nvcc calls, which looks beside nvcc itself
        "NVCC_APPEND_FLAGS": "-std=c++17",  # Horovod's 11 is too old for the headers of today's compilers
        "PATH": f"{toolkit / 'bin'}{os.pathsep}{path}",
    }
