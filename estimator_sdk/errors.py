"""The SDK's exceptions. Every one is an `EstimatorError`, and every message ends with a next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from estimator_container.failures.verdict import Verdict


class EstimatorError(Exception):
    """The base class of the SDK's exceptions."""

    def __str__(self) -> str:
        return _without_secrets(super().__str__())


class InvalidArgument(EstimatorError, ValueError):
    """A value that cannot be used; nothing has been started."""

    argument: str
    """The argument, or the path of the member, such as `ResourceConfig.InstanceCount`."""

    def __init__(self, argument: str, message: str) -> None:
        """`message` is a complete sentence that names the argument itself."""
        super().__init__(argument, message)
        self.argument = argument

    def __str__(self) -> str:
        return _without_secrets(str(self.args[1]))


class JobFailed(EstimatorError):
    """A job has run and failed."""

    job_name: str
    verdict: Verdict
    """Which rank on which host failed, how, and with what error text."""

    def __init__(self, job_name: str, verdict: Verdict) -> None:
        super().__init__(job_name, verdict)
        self.job_name = job_name
        self.verdict = verdict

    def __str__(self) -> str:
        return f"the job {self.job_name} failed: {self.verdict.text().rstrip()}"


class JobNotFound(EstimatorError):
    """No backend knows a job with that name."""


class BackendError(EstimatorError):
    """A backend could not do what was asked, for a reason outside the job."""


def _without_secrets(message: str) -> str:
    """A message may quote what is wrong, and that may be a command or a URI with a password."""
    from estimator_container.logs.masking import in_line

    return in_line(message)
