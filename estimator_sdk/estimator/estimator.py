"""The estimator: every setting of a training job, under the names that SageMaker users know."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ..code.source import Source
from ..errors import InvalidArgument
from ..spec.training_input import Inputs, channels, frames
from ..values import job_name as job_names
from . import checks, command_line, document
from .arguments import Arguments
from .job_spec import JobSpec
from .sdk_v2_arguments import takes_sdk_v2_arguments

if TYPE_CHECKING:
    from ..display.progress import Logs
    from ..job.diagnosis.diagnosis import Diagnosis
    from ..job.job import Job
    from ..plan.plan import Plan


@takes_sdk_v2_arguments
@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Arguments):
    """A training job that can be run again and again; `fit()` runs it.

    All arguments are given by name. Each is checked here, before anything starts: an unknown name, a wrong
    type or a value out of range raises InvalidArgument, which names it and suggests the nearest correct
    one. Attributes can be changed afterwards and are checked again by `spec()`.
    """

    def __post_init__(self) -> None:
        # What a spec would refuse is refused now, at the line that says it.
        self.spec()

    def __repr__(self) -> str:
        from . import secrets

        return secrets.representation(self)

    @property
    def source(self) -> Source | None:
        """The user's code; None if the image's own program runs."""
        if self.entry_point is None and self.command is None and self.steps is None:
            return None
        return Source(
            None if self.entry_point is None else os.fspath(self.entry_point),
            None if self.source_dir is None else os.fspath(self.source_dir),
            tuple(os.fspath(dependency) for dependency in self.dependencies),
            None if self.command is None else command_line.script_of(self.command),
        )

    @property
    def training_image(self) -> str | None:
        """The job's container image; None if it runs in this Python environment."""
        return self.image_uri

    def set_hyperparameters(self, **hyperparameters: object) -> None:
        """Add hyperparameters, or replace those of the same names. Raises InvalidArgument, and changes nothing then."""
        before = self.hyperparameters
        self.hyperparameters = {**(before or {}), **hyperparameters}
        try:
            self.spec()
        except InvalidArgument:
            self.hyperparameters = before
            raise

    def spec(
        self, inputs: Inputs | None = None, job_name: str | None = None, *, code_uri: str | None = None
    ) -> JobSpec:
        """The job as a typed CreateTrainingJob document; `code_uri` is where its code bundle is.

        Reads no files but the `hostfile`. Without `job_name` each call creates a new name. Raises InvalidArgument.
        """
        self._check()
        name = self._new_job_name() if job_name is None else job_names.checked(job_name)
        code = None if self.source is None else document.Code(self.source.program, code_uri)
        return document.job_spec(self, name, self.training_image, code, channels(inputs) or ())

    def plan(self, inputs: Inputs | None = None, job_name: str | None = None) -> Plan:
        """What `fit()` with the same arguments would run, resolved in every detail; `print` shows it.

        Starts nothing. Raises InvalidArgument for what cannot run, and BackendError where the engine or the service
        that is to run it does not answer.
        """
        from . import launch

        name = self._new_job_name() if job_name is None else job_name
        for _, files in frames(inputs):
            files.prepare()
        return launch.plan(
            self.source, lambda code: self.spec(inputs, name, code_uri=code), self.backend, self.code_location
        )

    def to_training_job_request(self, inputs: Inputs | None = None, job_name: str | None = None) -> dict[str, Any]:
        """The CreateTrainingJob document that `fit()` on SageMaker sends, with its code already in S3.

        It can be passed to `aws sagemaker create-training-job --cli-input-json`, to boto3, or to
        `JobSpec.from_request`, whose result any backend can run. Starts nothing. Raises InvalidArgument as `plan`
        does, and BackendError if the code cannot be uploaded.
        """
        from . import launch

        name = self._new_job_name() if job_name is None else job_name
        return launch.request(
            self.source, lambda code: self.spec(inputs, name, code_uri=code), self.code_location, inputs
        )

    def fit(
        self,
        inputs: Inputs | None = None,
        wait: bool = True,
        logs: Logs | bool = "all",
        job_name: str | None = None,
    ) -> Job:
        """Run the job: make its `plan()`, and start exactly that plan.

        inputs: a URI or a TrainingInput, or a dict of them by channel name.
        wait: return when the job has ended; False returns as soon as it has started.
        logs: which lines to show while waiting: `all`, those of `rank0`, or `none`.
        job_name: the job's name; None creates a new one.

        Raises InvalidArgument and BackendError before anything has started, and JobFailed, which names the first
        failing rank, if it waits and the job fails. Ctrl-C stops the job cleanly.
        """
        from . import launch

        chosen = launch.checked_logs(logs)
        planned = self.plan(inputs, job_name)
        launch.write_frames(planned, inputs)
        return launch.run(planned, wait, chosen)

    def diagnose(self, inputs: Inputs | None = None, job_name: str | None = None) -> Diagnosis:
        """Run the job to its end, without showing its log, and say why its training steps take as long as they do.

        `print` shows what is returned as `estimator doctor JOB` does; for a job that was started before, there is
        `Job.diagnose()`. Raises what `fit` raises, and InvalidArgument, before anything has started, for a service that
        keeps what is needed to itself.
        """
        from . import launch

        planned = self.plan(inputs, job_name)
        launch.check_told_here(planned)
        launch.write_frames(planned, inputs)
        return launch.run(planned, True, "none").diagnose()

    def _check(self) -> None:
        checks.check(self)

    def _new_job_name(self) -> str:
        if self.base_job_name is not None:
            return job_names.unique(self.base_job_name)
        program = self.source.program if self.source is not None else None
        if self.command is not None:
            program = command_line.named_by(self.command)
        if self.steps is not None and self.source_dir is not None:
            program = Path(self.source_dir).resolve().name
        if program is not None:
            return job_names.unique(job_names.base_of(PurePosixPath(program).stem))
        image = (self.training_image or "").rpartition("/")[2].partition("@")[0].partition(":")[0]
        return job_names.unique(job_names.base_of(image))
