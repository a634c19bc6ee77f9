"""A job as a run of MLflow: its hyperparameters, its metrics, and what its machines measured by MLflow's own names."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from estimator_container.contract import hyperparameters
from estimator_container.telemetry import metric_table as table

from ...errors import EstimatorError
from ...spec import masking
from ..curves import ModelValue, tell_values
from ..machines import MachineSeries, Question, logs_here, read
from .needed import library

if TYPE_CHECKING:
    from ...backends.port import StartedJob, State

MOST_IN_A_REQUEST = 1000  # metrics; MLflow's own limit, `MAX_METRICS_PER_BATCH`
LONGEST_PARAMETER = 6000  # characters; likewise, `MAX_PARAM_VAL_LENGTH`
POINTS = 1000
"""Of each series of a machine."""
MEGA = 1e6
_NAMES = {
    (table.CPU, ""): ("cpu_utilization_percentage", 100.0),
    (table.MEMORY, ""): ("system_memory_usage_megabytes", 1 / MEGA),
    (table.NETWORK, table.RECEIVE): ("network_receive_megabytes_per_second", 1 / MEGA),
    (table.NETWORK, table.TRANSMIT): ("network_transmit_megabytes_per_second", 1 / MEGA),
    (table.DISK, table.READ): ("disk_read_megabytes_per_second", 1 / MEGA),
    (table.DISK, table.WRITE): ("disk_write_megabytes_per_second", 1 / MEGA),
}
"""What a host has, as MLflow names it, and its factor; rates have no name there, and get one like these."""
_NAMES_OF_GPUS = {
    table.GPU: ("utilization_percentage", 100.0),
    table.GPU_MEMORY: ("memory_usage_megabytes", 1 / MEGA),
    table.GPU_POWER: ("power_usage_watts", 1.0),
}
_ENDINGS = {"Completed": "FINISHED", "Failed": "FAILED", "Stopped": "KILLED"}


def log(job: StartedJob, uri: str | None, experiment: str) -> str:
    """Make a run of a job and return its id; `uri` is of the tracking server or folder, None for MLflow's own choice.

    Raises EstimatorError for a job that runs elsewhere, without MLflow, and for what MLflow refuses.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # of MLflow's own use, which nobody has asked for
    mlflow = library("mlflow", "mlflow")
    logs_here(job)
    try:
        return _log(mlflow, job, uri, experiment)
    except mlflow.exceptions.MlflowException as error:
        raise EstimatorError(f"MLflow does not take the job {job.name}: {error}") from None


def _log(mlflow: Any, job: StartedJob, uri: str | None, experiment: str) -> str:  # noqa: ANN401 - a module without types
    client, record = mlflow.MlflowClient(tracking_uri=uri), job.record()
    known = client.get_experiment_by_name(experiment)
    number = client.create_experiment(experiment) if known is None else known.experiment_id
    began = None if record.created is None else round(1000 * record.created)
    run = client.create_run(number, start_time=began, run_name=job.name, tags=_tags(record))
    sent = _Sender(client, mlflow.entities.Metric, run.info.run_id)
    for name, value in _parameters(job):
        client.log_param(run.info.run_id, name, value)
    tell_values(job, sent.add_value)
    for one in read(job, Question(points=POINTS)).series:
        _add_series(sent, one, len(record.hosts) > 1)
    sent.flush()
    if record.is_final:
        ended = None if record.ended is None else round(1000 * record.ended)
        client.set_terminated(run.info.run_id, _ENDINGS[record.status], ended)
    found: str = run.info.run_id
    return found


class _Sender:
    """Sends metrics, many at once."""

    def __init__(self, client: Any, kind: Any, run: str) -> None:  # noqa: ANN401 - classes without types
        self._client = client
        self._kind = kind
        self._run = run
        self._pending: list[Any] = []

    def add_value(self, value: ModelValue) -> None:
        """The first rank has the names of metrics alone, the others below their own."""
        name = value.name if value.rank in (None, 0) else f"rank_{value.rank}/{value.name}"
        self.add(name, value.value, value.time, value.step)

    def add(self, name: str, value: float, time: float, step: int) -> None:
        if not math.isfinite(value) and not math.isnan(value):
            value = math.copysign(1.7976931348623157e308, value)  # as MLflow itself stores it
        self._pending.append(self._kind(name, value, round(1000 * time), step))
        if len(self._pending) >= MOST_IN_A_REQUEST:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            self._client.log_batch(self._run, metrics=self._pending)
            self._pending = []


def _add_series(sent: _Sender, one: MachineSeries, has_nodes: bool) -> None:
    known = _NAMES.get((one.metric, one.part))
    if known is None and one.metric in _NAMES_OF_GPUS:
        name, factor = _NAMES_OF_GPUS[one.metric]
        known = (f"gpu_{one.part}_{name}", factor)
    if known is None or one.is_of_rank:
        return
    node = f"{one.host}/" if has_nodes else ""
    for place, (time, value) in enumerate(zip(one.times, one.mean, strict=True)):
        sent.add(f"system/{node}{known[0]}", known[1] * value, time, place)


def _parameters(job: StartedJob) -> Iterator[tuple[str, str]]:
    document = masking.in_document(job.request())
    for name, value in (document.get("HyperParameters") or {}).items():
        if not hyperparameters.is_reserved(name):
            yield name, str(value)[:LONGEST_PARAMETER]


def _tags(record: State) -> dict[str, str]:
    tags = {
        "estimator.job": record.name,
        "estimator.backend": record.backend,
        "estimator.hosts": " ".join(record.hosts),
    }
    return tags if record.verdict is None else {**tags, "estimator.verdict": record.verdict.message}
