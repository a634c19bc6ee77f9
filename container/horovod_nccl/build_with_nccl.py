"""Build Horovod 0.28.1 with NCCL for the PyTorch with CUDA of the interpreter that runs this; install it there.

    python build_with_nccl.py [OPTION-OF-BUILD_HOROVOD…]

Its compiler is NVIDIA's from PyPI, of the CUDA that PyTorch was built with, and its NCCL is the one that came with
PyTorch, so nothing of CUDA has to be installed on the machine; building needs no GPU either. Everything else is done by
`build_horovod.py`, whose sources and cache these are. A PyTorch with CUDA cannot have a Horovod without it: Horovod's
own build asks for CUDA then.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.with_name("horovod")))

import build_horovod  # noqa: E402 - it lies beside this folder
from build_commands import BuildError  # noqa: E402

COMPILER = ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl")
CAPABILITIES = "75,80,86,90"
"""Of the GPUs that machine code is made for, from Turing to Hopper; later ones compile it when it is loaded."""
CHECK = "import horovod.torch as hvd; assert hvd.nccl_built() and hvd.cuda_built(), 'it was built without NCCL'"


def cuda_of_torch() -> str:
    """The version of CUDA that this interpreter's PyTorch is built with. Raises BuildError without one."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise BuildError(f"{sys.executable} has no PyTorch: pip install torch")
    told = Path(spec.origin).with_name("version.py").read_text()
    found = re.search(r"^cuda\b.*= *'([\d.]+)'", told, re.MULTILINE)
    if found is None:
        raise BuildError("this PyTorch is a build without CUDA: build_horovod.py builds Horovod for it")
    if build_horovod.installed("tensorflow", "tensorflow-cpu"):
        raise BuildError(f"{sys.prefix} has TensorFlow too, which wants another CUDA: use an environment without it")
    return found[1]


def toolkit(nvidia: Path, cuda: str, scratch: Path) -> Path:
    """A folder as CMake expects CUDA's, of links to what pip has installed: it looks for `lib64` and names without
    versions."""
    installed, libraries = nvidia / f"cu{cuda.partition('.')[0]}", scratch / "cuda" / "lib64"
    libraries.mkdir(parents=True)
    for name in ("bin", "include", "nvvm"):
        (scratch / "cuda" / name).symlink_to(installed / name)
    for library in ((installed / "lib").iterdir(), (nvidia / "nccl" / "lib").iterdir()):
        for file in library:
            for name in {file.name, re.sub(r"\.so\.\d+$", ".so", file.name)}:
                (libraries / name).symlink_to(file)
    return scratch / "cuda"


def environment(nvidia: Path, cuda: Path) -> dict[str, str]:
    """What Horovod's build is told; docs/install.rst and cmake/Modules/FindNCCL.cmake of its sources."""
    return {
        "HOROVOD_GPU_OPERATIONS": "NCCL",
        "HOROVOD_CUDA_HOME": str(cuda),
        "HOROVOD_NCCL_INCLUDE": str(nvidia / "nccl" / "include"),
        "HOROVOD_NCCL_LIB": str(cuda / "lib64"),
        "HOROVOD_NCCL_LINK": "SHARED",
        "HOROVOD_BUILD_CUDA_CC_LIST": CAPABILITIES,
        "CUDA_HOME": str(cuda),
        "CUDAToolkit_ROOT": str(cuda),
        "LIBRARY_PATH": str(cuda / "lib64"),  # of the linker that nvcc calls, which looks beside nvcc itself
        "NVCC_APPEND_FLAGS": "-std=c++17",  # Horovod's 11 is too old for the headers of today's compilers
        "PATH": f"{cuda / 'bin'}:{os.environ.get('PATH', os.defpath)}",
    }


def main(argv: list[str]) -> int:
    try:
        cuda = cuda_of_torch()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    options = build_horovod.arguments(argv)
    wanted = [f"{name}=={cuda}.*" for name in COMPILER]
    subprocess.run([*build_horovod.PIP, "install", "--quiet", *wanted], check=True)
    spec = importlib.util.find_spec("nvidia")
    assert spec is not None and spec.submodule_search_locations, "PyTorch depends on packages of it"
    nvidia = Path(next(iter(spec.submodule_search_locations)))
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.update(environment(nvidia, toolkit(nvidia, cuda, Path(scratch))))
        code = build_horovod.main([*argv, "--cache", str(options.cache / f"nccl-cuda-{cuda}")])
    return code or subprocess.run([sys.executable, "-c", CHECK], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
