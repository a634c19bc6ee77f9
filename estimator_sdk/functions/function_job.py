"""From a call to a job and back: build the `JobSpec`, run it, return what the function returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, JobFailed
from ..estimator.estimator import Estimator
from ..spec.training_input import channels
from ..values import job_name as job_names
from ..values.home import temporary_folder
from ..values.naming import suggestion
from .call import PROGRAM, Call

if TYPE_CHECKING:
    from ..display.progress import Logs
    from ..spec.training_input import Inputs

_INSTEAD = {
    "entry_point": "the function is what runs",
    "command": "the function is what runs",
    "steps": "the function is what runs",
    "arguments": "give the function its arguments when it is called",
    "source_dir": "the function travels by itself; put modules and a requirements.txt that it needs into dependencies",
    "hyperparameters": "give the function its arguments when it is called",
    "container_entry_point": "the function is what runs",
    "container_arguments": "the function is what runs",
}


@dataclass(frozen=True)
class FunctionJob:
    """The settings of a job that runs a function, checked when they are given."""

    title: str
    """What the user calls, for error messages."""
    settings: Mapping[str, Any]
    """Arguments of `Estimator`."""
    inputs: Inputs | None = None

    def check(self, *own: str) -> Estimator:
        """What runs the job. Raises InvalidArgument for an argument that is unknown or wrong.

        `own` are the names of the caller's own.
        """
        known = [field.name for field in fields(Estimator) if field.name not in _INSTEAD]
        for name in self.settings:
            if name in _INSTEAD:
                raise InvalidArgument(name, f"{self.title} takes no {name}: {_INSTEAD[name]}")
            if name not in known:
                hint = suggestion(name, [*known, *own, "inputs"])
                raise InvalidArgument(name, f"{self.title} has no argument {name!r}; {hint}")
        channels(self.inputs)
        return self._estimator("function", ".")

    def run(self, call: Call, logs: Logs = "all") -> Any:  # noqa: ANN401 - what the function returns
        """Run the call as a job, wait for it, and return what rank 0 returned.

        Raises InvalidArgument, with nothing started; the function's own exception, whose cause is JobFailed; JobFailed
        where it was no exception or cannot be had; and EstimatorError for a job that was stopped.
        """
        from ..estimator import launch
        from ..job.job import Job
        from . import outcome

        call.check()
        with temporary_folder(f"the code that calls {call.name}", call.write) as folder:
            plan = self._estimator(call.name, folder).plan(self.inputs)
        launch.write_frames(plan, self.inputs)
        try:
            job = launch.run(plan, True, logs)
        except JobFailed as failed:
            error = outcome.exception_of(Job.attach(plan.job_name), failed.verdict)
            if error is None:
                raise
            raise error from failed
        return outcome.value_of(job)

    def _estimator(self, name: str, folder: str) -> Estimator:
        settings = {"base_job_name": job_names.base_of(name), **self.settings}
        return Estimator(**settings, entry_point=PROGRAM, source_dir=folder)
