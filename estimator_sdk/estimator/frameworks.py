"""Estimators that know their framework: they choose the image with the requested version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .. import backends
from ..backends.docker.images import catalogue
from ..errors import InvalidArgument
from ..spec import instances
from .estimator import Estimator
from .sdk_v2_arguments import takes_sdk_v2_arguments

if TYPE_CHECKING:
    from ..plan.plan import Plan
    from ..spec.training_input import Inputs


@takes_sdk_v2_arguments
@dataclass(kw_only=True, eq=False, repr=False)
class _FrameworkEstimator(Estimator):
    framework_version: str | None = None
    """The framework's version, such as `2.21`: chooses the image, which is built when it is first used, and has CUDA
    where the instance type has GPUs. None uses the framework in this Python environment or in `image_uri`, or with
    `backend="docker"` the newest one that there is an image for."""
    py_version: str | None = None
    """The image's Python version as SageMaker writes it: `py311`, which is also the default."""

    _framework: ClassVar[catalogue.Framework]
    _distributions: ClassVar[tuple[str, ...]]
    _module: ClassVar[str]

    @property
    def training_image(self) -> str | None:
        """`image_uri`, or the image with the framework's version. Raises InvalidArgument for an unknown version."""
        if self.image_uri is not None:
            return self.image_uri
        if self.framework_version is None:
            if self.py_version is not None:
                what = "py_version has no effect without framework_version; give both, or neither"
                raise InvalidArgument("py_version", what)
            # Containers have nothing of this environment, so there has to be a version.
            has_image = self.backend is not None and backends.capabilities(self.backend).has_images
            return catalogue.newest(self._framework, self._for_gpus).name if has_image else None
        return catalogue.find(self._framework, self.framework_version, self.py_version, self._for_gpus).name

    @property
    def _for_gpus(self) -> bool:
        """Whether its image needs CUDA, if it runs in one: what is known before it is planned."""
        may_run_in_image = self.backend is None or not backends.capabilities(self.backend).is_this_environment
        return may_run_in_image and instances.has_gpus(self.instance_type)

    def plan(self, inputs: Inputs | None = None, job_name: str | None = None) -> Plan:
        """As `Estimator.plan`; on processes it also compares this environment with `framework_version`."""
        plan = super().plan(inputs, job_name)
        runs_here = backends.capabilities(plan.backend).is_this_environment
        if runs_here and self.image_uri is None and self.framework_version is not None:
            self._check_environment(self.framework_version)
        if runs_here and instances.gpus(plan.instance_type) is None:
            from ..plan import code_imports  # few jobs ask for GPUs

            code_imports.refuse_build_without_cuda(plan.instance_type, self._module)
        return plan

    def _check_environment(self, wanted: str) -> None:
        from importlib.metadata import distributions

        found = next((each for name in self._distributions for each in distributions(name=name)), None)
        version = found.version.partition("+")[0] if found else "none"
        if not f"{version}.".startswith(f"{wanted}."):
            raise InvalidArgument(
                "framework_version",
                f"framework_version is {wanted}, but hosts that are processes use this Python environment's "
                f"{self._distributions[0]}, which is {version}; install {wanted} here, leave framework_version out, or "
                "use backend='docker'",
            )


class TensorFlow(_FrameworkEstimator):
    """An Estimator whose image has TensorFlow, Keras and Horovod."""

    _framework = "tensorflow"
    _distributions = ("tensorflow", "tensorflow-cpu")
    _module = "tensorflow"


class PyTorch(_FrameworkEstimator):
    """An Estimator whose image has PyTorch and Horovod."""

    _framework = "pytorch"
    _distributions = ("torch",)
    _module = "torch"
