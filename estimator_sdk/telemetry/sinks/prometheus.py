"""The newest values of a job as Prometheus reads them, in its base units."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from estimator_container.telemetry.metric_table import KINDS

from ..curves import Curves
from ..machines import Question, logs_here, read
from .needed import library

if TYPE_CHECKING:
    from ...backends.port import StartedJob

NEWEST_SECONDS = 60.0
"""What was measured before that is not the state of a job that runs."""
_SUFFIXES = {"1": "ratio", "By": "bytes", "By/s": "bytes_per_second", "W": "watts", "Cel": "celsius"}
_LABELS = ("training_job", "host", "rank", "part")
"""`job` itself is the label of a scrape."""
_COUNTS = {"hw.gpu.throttle_reasons", "hw.gpu.errors.xid"}
"""Of unit 1, and no ratio."""


class JobCollector:
    """Gives a registry of `prometheus_client` what a job measures, at each scrape what is the newest then."""

    def __init__(self, job: StartedJob) -> None:
        """Raises EstimatorError for a job that runs elsewhere, and without `prometheus_client`."""
        self._core = library("prometheus_client.core", "prometheus")
        logs_here(job)
        self._job = job
        self._curves = Curves(job, points=2)

    def collect(self) -> Iterator[Any]:
        """The families of metrics."""
        yield from self._machines()
        yield from self._model()

    def _machines(self) -> Iterator[Any]:
        ended = self._job.record().ended
        start = (time.time() if ended is None else ended) - NEWEST_SECONDS
        families: dict[str, Any] = {}
        for one in read(self._job, Question(start=start, resolution=2)).series:
            name = name_of(one.metric)
            if name not in families:
                families[name] = self._core.GaugeMetricFamily(name, KINDS[one.metric].meaning, labels=_LABELS)
            families[name].add_metric([self._job.name, one.host, _text(one.rank), one.part], one.mean[-1])
        yield from families.values()

    def _model(self) -> Iterator[Any]:
        self._curves.refresh()
        labels = ("training_job", "host", "rank", "metric")
        values = self._core.GaugeMetricFamily("training_metric", "newest value of a metric of the model", labels=labels)
        steps = self._core.GaugeMetricFamily("training_metric_step", "step of that value", labels=labels)
        for part in self._curves.parts():
            whose = [self._job.name, part.host, _text(part.rank), part.name]
            values.add_metric(whose, part.newest)
            steps.add_metric(whose, part.newest_step)
        yield values
        yield steps


def text(job: StartedJob) -> str:
    """One exposition, as a scrape would have it. Raises as `JobCollector`."""
    client = library("prometheus_client", "prometheus")
    registry = client.CollectorRegistry()
    registry.register(JobCollector(job))
    exposed: bytes = client.generate_latest(registry)
    return exposed.decode()


def serve(job: StartedJob, port: int) -> tuple[int, Any]:
    """Serve `/metrics` on the loopback, in a thread; returns the port, which is a free one for 0, and what ends it.

    Raises OSError for a port that is taken, and as `JobCollector`.
    """
    client = library("prometheus_client", "prometheus")
    registry = client.CollectorRegistry()
    registry.register(JobCollector(job))
    server, _thread = client.start_http_server(port, addr="127.0.0.1", registry=registry)
    return server.server_port, server.shutdown


def name_of(metric: str) -> str:
    """The name of a metric as Prometheus has it.

    >>> name_of("system.memory.usage"), name_of("process.thread.count")
    ('system_memory_usage_bytes', 'process_thread_count')
    """
    unit = KINDS[metric].unit
    suffix = "" if metric in _COUNTS else _SUFFIXES.get(unit, "per_second" if unit.endswith("/s") else "")
    return re.sub(r"\W", "_", f"{metric}_{suffix}" if suffix else metric)


def _text(rank: int | None) -> str:
    return "" if rank is None else str(rank)
