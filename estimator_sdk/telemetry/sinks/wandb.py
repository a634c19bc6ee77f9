"""A job as a run of Weights & Biases, in files that `wandb sync` uploads: nothing is sent from here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_container.contract import hyperparameters

from ...errors import EstimatorError
from ...spec import masking
from ..curves import ModelValue, tell_values
from ..machines import Question, logs_here, read
from .needed import library

if TYPE_CHECKING:
    from ...backends.port import StartedJob

POINTS = 1000
"""Of each series of a machine."""
STEP = "global_step"
"""The axis of the metrics of the model."""


def write(job: StartedJob, folder: Path, project: str) -> str:
    """Write a run of a job below a folder, and return the folder of that run.

    Raises EstimatorError for a job that runs elsewhere, without `wandb`, and for what that refuses.
    """
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # to its makers, which nobody has asked for
    wandb = library("wandb", "wandb")
    logs_here(job)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _write(wandb, job, folder, project)
    except wandb.errors.Error as error:
        raise EstimatorError(f"wandb does not take the job {job.name}: {error}") from None


def _write(wandb: Any, job: StartedJob, folder: Path, project: str) -> str:  # noqa: ANN401 - a module of many types
    record = job.record()
    settings = wandb.Settings(
        console="off",  # the output of this process is not the job's
        disable_git=True,
        disable_code=True,
        save_code=False,
        silent=True,
        x_disable_meta=True,  # this machine is not the job's
        x_disable_stats=True,
    )
    run = wandb.init(
        mode="offline",
        dir=str(folder),
        project=project,
        id=job.name,
        name=job.name,
        config={**_parameters(job), "estimator.backend": record.backend, "estimator.hosts": list(record.hosts)},
        settings=settings,
    )
    try:
        _log_machines(run, job)
        rows = _Rows(run)
        tell_values(job, rows.add)
        rows.flush()
    except BaseException:
        run.finish(exit_code=1)
        raise
    place = str(run.settings.sync_dir)
    run.finish(exit_code=0 if record.status in ("Completed", "InProgress") else 1)
    return place


def _log_machines(run: Any, job: StartedJob) -> None:  # noqa: ANN401
    """What was measured at one time is one row."""
    rows: dict[float, dict[str, float]] = {}
    for one in read(job, Question(points=POINTS)).series:
        words = ("machines", one.metric, one.host, "" if one.rank is None else f"rank {one.rank}", one.part)
        name = "/".join(filter(None, words))
        for at, value in zip(one.times, one.mean, strict=True):
            rows.setdefault(at, {})[name] = value
    for at, row in sorted(rows.items()):
        run.log({**row, "_timestamp": at})


class _Rows:
    """Puts the values of a rank that follow each other at one step into one row."""

    def __init__(self, run: Any) -> None:  # noqa: ANN401
        self._run = run
        self._names = set[str]()
        self._whose: tuple[str, int | None, int] | None = None
        self._row: dict[str, float] = {}

    def add(self, value: ModelValue) -> None:
        """The first rank has the names of metrics alone, the others below their own."""
        name = value.name if value.rank in (None, 0) else f"rank_{value.rank}/{value.name}"
        if name not in self._names:
            self._names.add(name)
            self._run.define_metric(name, step_metric=STEP)
        whose = (value.host, value.rank, value.step)
        if whose != self._whose or name in self._row:
            self.flush()
            self._whose = whose
            self._row = {STEP: value.step, "_timestamp": value.time}
        self._row[name] = value.value

    def flush(self) -> None:
        """Write what there is."""
        if self._row:
            self._run.log(self._row)
        self._row = {}


def _parameters(job: StartedJob) -> Mapping[str, str]:
    given = masking.in_document(job.request()).get("HyperParameters") or {}
    return {name: str(value) for name, value in given.items() if not hyperparameters.is_reserved(name)}
