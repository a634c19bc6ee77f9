"""Write a training script once; run it over MPI as processes, containers or cloud instances.

The names below are the public ones. Each is loaded when it is first used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import BackendError, EstimatorError, InvalidArgument, JobFailed, JobNotFound
    from .estimator.estimator import Estimator
    from .estimator.frameworks import PyTorch, TensorFlow
    from .estimator.job_spec import JobSpec
    from .functions.horovod_runner import HorovodRunner
    from .functions.remote import remote
    from .job.job import Job, list_jobs
    from .plan.plan import Plan
    from .spec.job_document import InstanceGroup
    from .spec.training_input import TrainingInput

__version__ = "0.1.0"

_HOMES = {
    "BackendError": "errors",
    "Estimator": "estimator.estimator",
    "EstimatorError": "errors",
    "HorovodRunner": "functions.horovod_runner",
    "InstanceGroup": "spec.job_document",
    "InvalidArgument": "errors",
    "Job": "job.job",
    "JobFailed": "errors",
    "JobNotFound": "errors",
    "JobSpec": "estimator.job_spec",
    "Plan": "plan.plan",
    "PyTorch": "estimator.frameworks",
    "TensorFlow": "estimator.frameworks",
    "TrainingInput": "spec.training_input",
    "list_jobs": "job.job",
    "remote": "functions.remote",
}
__all__ = [
    "BackendError",
    "Estimator",
    "EstimatorError",
    "HorovodRunner",
    "InstanceGroup",
    "InvalidArgument",
    "Job",
    "JobFailed",
    "JobNotFound",
    "JobSpec",
    "Plan",
    "PyTorch",
    "TensorFlow",
    "TrainingInput",
    "list_jobs",
    "remote",
]


if "ESTIMATOR_LOG" in os.environ:
    from .values.debugging import show_if_asked_for

    show_if_asked_for()


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
