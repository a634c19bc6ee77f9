"""A job's metrics as OpenTelemetry has them: sent to a collector by OTLP, or kept as OTLP's JSON in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from estimator_container.telemetry.metric_table import KINDS

from ...errors import EstimatorError, InvalidArgument
from ..curves import ModelValue, tell_values
from ..machines import MachineSeries, Question, logs_here, read
from .needed import library

if TYPE_CHECKING:
    from ...backends.port import StartedJob

POINTS = 2000
"""Of each series of a machine."""
MOST_IN_A_REQUEST = 2000
"""Points; collectors refuse messages of more than 4 MiB unless they are told otherwise."""
PATH = "/v1/metrics"  # of the protocol, where an address has none
SECONDS = 10.0
"""In which a collector has to take a request, with all tries again."""
VALUE, STEP = "training.metric", "training.metric.step"
"""No convention has a name for the metrics of a model."""
_MEANINGS = {VALUE: "a metric of the model", STEP: "step of that value"}
_NANO = 1e9


def send(job: StartedJob, uri: str) -> int:
    """Send all values of a job to a collector, by OTLP over HTTP; returns how many.

    Raises EstimatorError for a job that runs elsewhere, without the library, and for what the collector refuses, and
    InvalidArgument for an address that is none.
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidArgument("--uri", f"--uri must be the address of a collector, as http://localhost:4318, not {uri}")
    endpoint = uri if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}{PATH}"
    module = library("opentelemetry.exporter.otlp.proto.http.metric_exporter", "opentelemetry")
    exporter = module.OTLPMetricExporter(endpoint=endpoint, timeout=SECONDS)

    def take(data: Any) -> None:  # noqa: ANN401 - a class of a library that is loaded when it is used
        if exporter.export(data).name != "SUCCESS":
            raise EstimatorError(f"{endpoint} does not take the metrics of {job.name}; is a collector there?")

    try:
        return _tell(job, take)
    finally:
        exporter.shutdown()


def write(job: StartedJob, path: Path) -> int:
    """Write all values of a job to a file, as OTLP's file exporter does: a JSON object a line; returns how many.

    Raises EstimatorError for a job that runs elsewhere, and without the library.
    """
    encoder = library("opentelemetry.exporter.otlp.proto.common.metrics_encoder", "opentelemetry")
    json_format = library("google.protobuf.json_format", "opentelemetry")
    logs_here(job)
    with path.open("w", encoding="utf-8") as file:

        def take(data: Any) -> None:  # noqa: ANN401
            message = encoder.encode_metrics(data)
            file.write(json_format.MessageToJson(message, indent=None, use_integers_for_enums=True) + "\n")

        return _tell(job, take)


def _tell(job: StartedJob, take: Callable[[Any], None]) -> int:
    batches = _Batches(job, take)
    logs_here(job)
    for one in read(job, Question(points=POINTS)).series:
        batches.add_series(one)
    tell_values(job, batches.add_value)
    batches.flush()
    return batches.points


class _Batches:
    """Points, given away many at once."""

    def __init__(self, job: StartedJob, take: Callable[[Any], None]) -> None:
        self._export = library("opentelemetry.sdk.metrics.export", "opentelemetry")
        self._resources = library("opentelemetry.sdk.resources", "opentelemetry")
        self._scope = library("opentelemetry.sdk.util.instrumentation", "opentelemetry").InstrumentationScope(
            "estimator"
        )
        self._job = job
        self._take = take
        self._began = int((job.record().created or 0.0) * _NANO)
        self._pending: dict[str, dict[str, list[Any]]] = {}
        """Of each host, of each metric."""
        self._count = 0
        self.points = 0

    def add_series(self, one: MachineSeries) -> None:
        """What a machine measured."""
        attribute = KINDS[one.metric].attribute
        attributes: dict[str, str | int] = {} if one.rank is None else {"rank": one.rank}
        if one.part:
            attributes[attribute if attribute and " " not in attribute else "part"] = one.part
        for at, value in zip(one.times, one.mean, strict=True):
            self._add(one.host, one.metric, attributes, at, value)

    def add_value(self, value: ModelValue) -> None:
        """A value of the model, and its step."""
        rank: dict[str, str | int] = {} if value.rank is None else {"rank": value.rank}
        attributes = {"metric": value.name, **rank}
        self._add(value.host, VALUE, attributes, value.time, value.value)
        self._add(value.host, STEP, attributes, value.time, value.step)

    def _add(self, host: str, metric: str, attributes: dict[str, str | int], time: float, value: float) -> None:
        point = self._export.NumberDataPoint(attributes, self._began, int(time * _NANO), value)
        self._pending.setdefault(host, {}).setdefault(metric, []).append(point)
        self._count += 1
        self.points += 1
        if self._count >= MOST_IN_A_REQUEST:
            self.flush()

    def flush(self) -> None:
        """Give away what there is."""
        if self._count:
            resources = [self._of_host(host, metrics) for host, metrics in self._pending.items()]
            self._take(self._export.MetricsData(resources))
        self._pending, self._count = {}, 0

    def _of_host(self, host: str, metrics: dict[str, list[Any]]) -> Any:  # noqa: ANN401
        about = {"service.name": self._job.name, "host.name": host, "estimator.backend": self._job.record().backend}
        found = [
            self._export.Metric(name, _meaning(name), _unit(name), self._export.Gauge(points))
            for name, points in metrics.items()
        ]
        scope = self._export.ScopeMetrics(self._scope, found, "")
        return self._export.ResourceMetrics(self._resources.Resource(about), [scope], "")


def _meaning(name: str) -> str:
    return _MEANINGS[name] if name in _MEANINGS else KINDS[name].meaning


def _unit(name: str) -> str:
    return "1" if name in _MEANINGS else KINDS[name].unit
