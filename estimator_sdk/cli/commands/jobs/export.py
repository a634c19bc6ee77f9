"""`estimator export [JOB] --to PRODUCT`: give a job's metrics to another product."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import EstimatorError, InvalidArgument
from ... import answer, job_argument
from ...parser import Parser, port

if TYPE_CHECKING:
    from ....job.job import Job

_EXPERIMENT = "estimator"
_OF = {
    "port": ("prometheus",),
    "output": ("tensorboard", "opentelemetry", "wandb"),
    "uri": ("mlflow", "opentelemetry"),
    "experiment": ("mlflow", "wandb"),
}
"""Which options belong to which products."""


def add(parser: Parser) -> None:
    job_argument.add(parser)
    parser.add_argument("--to", choices=list(_TO), required=True, help="the product")
    parser.add_argument(
        "--port", type=port, metavar="N", help="prometheus: serve /metrics on this machine until the job has ended"
    )
    parser.add_argument(
        "--output",
        metavar="PATH",
        help="tensorboard: the folder of the event files (default: runs); opentelemetry: the file "
        "(default: JOB-metrics.jsonl); wandb: the folder (default: this one)",
    )
    parser.add_argument(
        "--uri",
        metavar="URI",
        help="mlflow: the tracking server or folder (default: MLflow's own); opentelemetry: the collector",
    )
    parser.add_argument(
        "--experiment", metavar="NAME", help=f"mlflow: the experiment; wandb: the project (default: {_EXPERIMENT})"
    )


def run(arguments: Namespace) -> int:
    for option, products in _OF.items():
        if getattr(arguments, option) is not None and arguments.to not in products:
            named = " or ".join(products)
            raise InvalidArgument(f"--{option}", f"--{option} has no effect without --to {named}; leave it out")
    job = job_argument.find(arguments)
    return _TO[arguments.to](job, arguments)


def _to_tensorboard(job: Job, arguments: Namespace) -> int:
    from ....telemetry.sinks import tensorboard

    folder = Path(arguments.output or "runs")
    points = tensorboard.write(job.started, folder)
    document = {"name": job.name, "folder": str(folder / job.name), "points": points}
    answer.show(arguments, document, [f"{folder / job.name}"])
    return 0


def _to_mlflow(job: Job, arguments: Namespace) -> int:
    from ....telemetry.sinks import mlflow

    experiment = arguments.experiment or _EXPERIMENT
    found = mlflow.log(job.started, arguments.uri, experiment)
    answer.show(arguments, {"name": job.name, "experiment": experiment, "run": found}, [found])
    return 0


def _to_opentelemetry(job: Job, arguments: Namespace) -> int:
    from ....telemetry.sinks import opentelemetry

    if arguments.uri is not None and arguments.output is not None:
        raise InvalidArgument("--output", "--output has no effect with --uri, which sends the values; leave one out")
    if arguments.uri is not None:
        points = opentelemetry.send(job.started, arguments.uri)
        answer.show(arguments, {"name": job.name, "uri": arguments.uri, "points": points}, [arguments.uri])
        return 0
    path = Path(arguments.output or f"{job.name}-metrics.jsonl")
    points = opentelemetry.write(job.started, path)
    answer.show(arguments, {"name": job.name, "file": str(path), "points": points}, [str(path)])
    return 0


def _to_wandb(job: Job, arguments: Namespace) -> int:
    from ....telemetry.sinks import wandb

    project = arguments.experiment or _EXPERIMENT
    place = wandb.write(job.started, Path(arguments.output or "."), project)
    answer.show(arguments, {"name": job.name, "project": project, "folder": place}, [place])
    return 0


def _to_prometheus(job: Job, arguments: Namespace) -> int:
    from ....telemetry.sinks import prometheus

    if arguments.port is None:
        exposition = prometheus.text(job.started)
        answer.show(arguments, {"name": job.name, "exposition": exposition}, exposition.splitlines())
        return 0
    try:
        port, end = prometheus.serve(job.started, arguments.port)
    except OSError as error:
        raise EstimatorError(f"--port {arguments.port} cannot be served: {error.strerror}; choose another") from None
    address = f"http://127.0.0.1:{port}/metrics"
    answer.show(arguments, {"name": job.name, "address": address}, [address])
    sys.stdout.flush()
    try:
        job.started.wait()
    finally:
        end()
    return 0


_TO: dict[str, Callable[[Job, Namespace], int]] = {
    "prometheus": _to_prometheus,
    "tensorboard": _to_tensorboard,
    "mlflow": _to_mlflow,
    "opentelemetry": _to_opentelemetry,
    "wandb": _to_wandb,
}
