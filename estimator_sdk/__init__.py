"""Write a training script once; run it over MPI as processes, containers or cloud instances.

The names below are the public ones. Each is loaded when it is first used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import BackendError as BackendError
    from .errors import EstimatorError as EstimatorError
    from .errors import InvalidArgument as InvalidArgument
    from .errors import JobFailed as JobFailed
    from .errors import JobNotFound as JobNotFound
    from .estimator.estimator import Estimator as Estimator
    from .estimator.frameworks import PyTorch as PyTorch
    from .estimator.frameworks import TensorFlow as TensorFlow
    from .estimator.job_spec import JobSpec as JobSpec
    from .functions.horovod_runner import HorovodRunner as HorovodRunner
    from .functions.remote import remote as remote
    from .job.job import Job as Job
    from .job.listing import list_jobs as list_jobs
    from .plan.plan import Plan as Plan
    from .spec.job_document import InstanceGroup as InstanceGroup
    from .spec.training_input import TrainingInput as TrainingInput

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
    "list_jobs": "job.listing",
    "remote": "functions.remote",
}
__all__ = [*_HOMES]  # noqa: PLE0604 - which are strings


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
