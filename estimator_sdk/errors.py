"""What the SDK raises. Every error is an `EstimatorError`, and every message ends with a next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from estimator_container.failures.verdict import Verdict


class EstimatorError(Exception):
    """The base of all errors of the SDK."""

    def __str__(self) -> str:
        return _without_secrets(super().__str__())


class InvalidArgument(EstimatorError, ValueError):
    """A value that cannot be used; nothing has been started."""

    argument: str
    """The argument, or the path of the member, such as `ResourceConfig.InstanceCount`."""

    def __init__(self, argument: str, message: str) -> None:
        """`message` is a whole sentence and names the argument itself."""
        super().__init__(argument, message)
        self.argument = argument

    def __str__(self) -> str:
        return _without_secrets(str(self.args[1]))


class JobFailed(EstimatorError):
    """A job that ran and failed."""

    job_name: str
    verdict: Verdict
    """Which rank on which host failed, how, and in whose words."""

    def __init__(self, job_name: str, verdict: Verdict) -> None:
        super().__init__(job_name, verdict)
        self.job_name = job_name
        self.verdict = verdict

    def __str__(self) -> str:
        return f"the job {self.job_name} failed: {self.verdict.text().rstrip()}"


class JobNotFound(EstimatorError):
    """No backend knows a job of that name."""


class BackendError(EstimatorError):
    """A backend could not do what it was asked to, for a reason outside the job."""


def _without_secrets(message: str) -> str:
    """A message may quote what is wrong, and that may be a command or a URI with a password."""
    from estimator_container.logs.masking import in_line

    return in_line(message)
