"""A job's metrics as TensorBoard's event files: a run for each rank, and one for the machines."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..curves import ModelValue, tell_values
from ..machines import Question, logs_here, read
from .needed import library

if TYPE_CHECKING:
    from ...backends.port import StartedJob

POINTS = 2000
"""Of each series of a machine."""


def write(job: StartedJob, folder: Path) -> int:
    """Write the files below a folder; returns how many points they have.

    Raises EstimatorError for a job that runs elsewhere, and without `tensorboardX`.
    """
    writers = _Writers(job, folder)
    logs_here(job)
    with writers.stack:
        tell_values(job, writers.add_value)
        machines = read(job, Question(points=POINTS))
        begin = min((one.times[0] for one in machines.series), default=0.0)
        for one in machines.series:
            writer = writers.of("machines")
            tag = "/".join(
                filter(None, (one.metric, one.host, "" if one.rank is None else f"rank {one.rank}", one.part))
            )
            for at, value in zip(one.times, one.mean, strict=True):
                writer.add_scalar(tag, value, round(at - begin), walltime=at)
            writers.points += len(one.times)
    return writers.points


class _Writers:
    """A writer of `tensorboardX` for each run."""

    def __init__(self, job: StartedJob, folder: Path) -> None:
        self._library = library("tensorboardX", "tensorboard")
        self._folder = folder / job.name
        self._writers: dict[str, Any] = {}
        self.stack = ExitStack()
        self.points = 0

    def of(self, run: str) -> Any:  # noqa: ANN401 - a class without types
        if run not in self._writers:
            writer = self._library.SummaryWriter(logdir=str(self._folder / run), flush_secs=3600)
            self._writers[run] = writer
            self.stack.callback(writer.close)
        return self._writers[run]

    def add_value(self, value: ModelValue) -> None:
        run = value.host if value.rank is None else f"rank-{value.rank}"
        self.of(run).add_scalar(value.name, value.value, value.step, walltime=value.time)
        self.points += 1
