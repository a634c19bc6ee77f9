"""The images there are: their names, and what each is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ....errors import InvalidArgument
from ....values.naming import suggestion

if TYPE_CHECKING:
    from estimator_container.contract.reserved import Reserved

Framework = Literal["mpi", "tensorflow", "pytorch"]

PULLED = "python:3.11-slim-bookworm"
"""The image that they are built on, where it can be had."""
PYTHON = "py311"
"""The Python of the images, as `py_version=` has it."""

# Version -> what pip installs, the newest first. Horovod was built for each of these, and docs/horovod.md says what ran
# on it. (TensorFlow 2.19 is left out because Horovod 0.28.1 does not compile against its headers. 2.15 is the last with
# Keras 2, so that scripts of its time run as they are.)
_TENSORFLOW = {
    "2.21.0": ("tensorflow-cpu==2.21.0", "keras==3.15.1"),
    "2.20.0": ("tensorflow-cpu==2.20.0", "keras==3.11.3"),
    "2.18.1": ("tensorflow-cpu==2.18.1", "keras==3.8.0"),
    "2.15.1": ("tensorflow-cpu==2.15.1", "keras==2.15.0"),
}
_PYTORCH = {
    "2.13.0": ("torch==2.13.0",),
}
VERSIONS: Mapping[Framework, Mapping[str, tuple[str, ...]]] = {"tensorflow": _TENSORFLOW, "pytorch": _PYTORCH}
# The same of the builds with CUDA, which bring NVIDIA's libraries: several gigabytes, so only the newest have one.
WITH_CUDA: Mapping[Framework, Mapping[str, tuple[str, ...]]] = {
    "tensorflow": {"2.21.0": ("tensorflow[and-cuda]==2.21.0", "keras==3.15.1")},
    "pytorch": {"2.13.0": ("torch==2.13.0",)},
}


@dataclass(frozen=True)
class Image:
    """An image that can be built."""

    framework: Framework
    version: str | None
    """The framework's version; None where there is none."""
    for_gpus: bool = False
    """Whether it contains the framework's build with CUDA."""

    @property
    def name(self) -> str:
        """The name under which the engine has it, such as `estimator/tensorflow:2.21.0-gpu-py311`."""
        return f"estimator/{self.framework}:{f'{self._build}-' if self.version else ''}{PYTHON}"

    @property
    def _build(self) -> str:
        return f"{self.version}{'-gpu' if self.for_gpus else ''}"

    @property
    def target(self) -> str:
        """The stage of the Dockerfile."""
        return "mpi" if self.framework == "mpi" else "framework"

    @property
    def packages(self) -> tuple[str, ...]:
        """What pip installs besides Open MPI, mpi4py, NumPy and scikit-learn."""
        return _versions(self.framework, self.for_gpus)[self.version] if self.version else ()

    @property
    def is_for_cpus(self) -> bool:
        """Whether it contains the build of a framework without CUDA."""
        return bool(self.version) and not self.for_gpus

    @property
    def is_newest(self) -> bool:
        """Whether no image of its framework is newer."""
        return self == newest(self.framework, self.for_gpus)

    @property
    def constraints(self) -> str:
        """The file in `container/image/constraints` that pins its packages. The newest without CUDA share theirs."""
        shared = self.is_newest and not self.for_gpus
        return "newest.txt" if shared else f"{self.framework}-{self._build}.txt"


MPI = Image("mpi", None)


def find(framework: Framework, framework_version: str, py_version: str | None = None, for_gpus: bool = False) -> Image:
    """The image of a framework's version: `2.21` or `2.21.0`.

    Raises InvalidArgument for a version that there is no image of, with those that there are.
    """
    versions = _versions(framework, for_gpus)
    if py_version not in (None, PYTHON):
        raise InvalidArgument(
            "py_version",
            f"no image is built with py_version {py_version!r}; use {PYTHON!r}, or give the image_uri= of an image of "
            "your own",
        )
    for version in versions:
        if framework_version in (version, version.rpartition(".")[0]):
            return Image(framework, version, for_gpus)
    kind = "image with CUDA" if for_gpus else "image"
    raise InvalidArgument(
        "framework_version",
        f"framework_version {framework_version!r} of {framework} has no {kind}; "
        f"{suggestion(framework_version, versions)} For another version give the image_uri= of an image of your own.",
    )


def newest(framework: Framework, for_gpus: bool = False) -> Image:
    """The image of a framework's newest version; the one without a framework is for GPUs as for none."""
    return MPI if framework == "mpi" else Image(framework, next(iter(_versions(framework, for_gpus))), for_gpus)


def default(reserved: Reserved, for_gpus: bool = False) -> Image:
    """The image of a job that names none: the plain one, or that of the framework that its distribution is of."""
    from ....spec.distributions import NAMES, options_of  # most who ask for an image name it

    for name in NAMES:
        framework = options_of(name).framework
        if framework is not None and reserved.distributions.get(name):
            return newest(framework, for_gpus)
    return MPI


def _versions(framework: Framework, for_gpus: bool) -> Mapping[str, tuple[str, ...]]:
    return (WITH_CUDA if for_gpus else VERSIONS)[framework]


def everything() -> Iterator[Image]:
    """All images."""
    yield MPI
    for for_gpus, of_all in ((False, VERSIONS), (True, WITH_CUDA)):
        for framework, versions in of_all.items():
            for version in versions:
                yield Image(framework, version, for_gpus)


def by_name(name: str) -> Image | None:
    """The image of ours that a name means; None for any other image."""
    return next((image for image in everything() if image.name == name), None)
