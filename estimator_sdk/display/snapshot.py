"""A job at one moment, from whatever process: its state, its view, and where to look further."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import EstimatorError
from ..telemetry.metrics import metric_definitions
from .view import View

if TYPE_CHECKING:
    from ..backends.port import StartedJob, State
    from .progress import Logs


class JobLink(NamedTuple):
    """Where something of the job is."""

    name: str
    place: str
    """A path or URI, to be read."""
    address: str | None
    """What a browser may open; None where it could not."""


@dataclass(frozen=True)
class Snapshot:
    """What is shown of a job."""

    state: State
    view: View
    links: tuple[JobLink, ...]

    @property
    def seconds(self) -> float | None:
        """From the begin of the first attempt to the end of the last, or until now; None before the first."""
        attempts = self.state.attempts
        if not attempts:
            return None
        ended = attempts[-1].ended if self.state.is_final else time.time()
        return None if ended is None else max(0.0, ended - attempts[0].began)


def new_view(job: StartedJob, logs: Logs = "all") -> View:
    """A view that nothing has been told yet."""
    return View(metric_definitions(job), logs)


def take(job: StartedJob) -> Snapshot:
    """Read all that there is of a job. Raises what reading its state and log raises."""
    view = new_view(job)
    for block in job.blocks(follow=False, on_event=view.on_event):
        for line in block.lines():
            view.on_line(line)
    return with_view(job, view)


def with_view(job: StartedJob, view: View) -> Snapshot:
    """The state of a job now, and a view of it that was kept."""
    state = job.record()
    return Snapshot(state, view, tuple(_links(job, state)))


def _links(job: StartedJob, state: State) -> list[JobLink]:
    links = [_link("model", state.model_data)] if state.model_data else []
    if state.is_final and state.output:
        links.append(_link("outputs", state.output))
    links += [JobLink("log", str(path), path.as_uri()) for path in job.log_files()]
    try:
        path: Path | None = job.path
    except EstimatorError:  # it runs elsewhere
        path = None
    if path is not None:
        links.append(JobLink("folder", str(path), path.as_uri()))
    console = _console(str(job.request().get("TrainingJobArn") or ""))
    return links if console is None else [*links, JobLink("console", console, console)]


def _link(name: str, uri: str) -> JobLink:
    return JobLink(name, uri, uri if uri.startswith(("file://", "https://")) else None)


def _console(arn: str) -> str | None:
    """The page of a job of SageMaker; an ARN is `arn:PARTITION:sagemaker:REGION:ACCOUNT:training-job/NAME`."""
    parts = arn.split(":")
    if len(parts) != 6 or parts[1] != "aws":
        return None
    region, name = parts[3], parts[5].partition("/")[2]
    return f"https://{region}.console.aws.amazon.com/sagemaker/home?region={region}#/jobs/{name}"
