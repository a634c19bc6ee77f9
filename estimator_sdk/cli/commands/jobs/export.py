"""`estimator export [JOB] --to prometheus|tensorboard|mlflow`: give a job's metrics to another product."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import EstimatorError, InvalidArgument
from ... import answer, job_argument
from ...parser import Parser

if TYPE_CHECKING:
    from ....job.job import Job

_EXPERIMENT = "estimator"
_OF = {"port": "prometheus", "output": "tensorboard", "uri": "mlflow", "experiment": "mlflow"}
"""Which options belong to which product."""


def add(parser: Parser) -> None:
    job_argument.add(parser)
    parser.add_argument("--to", choices=list(dict.fromkeys(_OF.values())), required=True, help="the product")
    parser.add_argument(
        "--port", type=_port, metavar="N", help="prometheus: serve /metrics on this machine until the job has ended"
    )
    parser.add_argument("--output", metavar="DIR", help="tensorboard: where the event files go (default: runs)")
    parser.add_argument("--uri", metavar="URI", help="mlflow: the tracking server or folder (default: MLflow's own)")
    parser.add_argument("--experiment", metavar="NAME", help=f"mlflow: the experiment (default: {_EXPERIMENT})")


def run(arguments: Namespace) -> int:
    for option, product in _OF.items():
        if getattr(arguments, option) is not None and product != arguments.to:
            raise InvalidArgument(f"--{option}", f"--{option} has no effect without --to {product}; leave it out")
    job = job_argument.find(arguments)
    if arguments.to == "prometheus":
        return _to_prometheus(job, arguments)
    if arguments.to == "tensorboard":
        from ....telemetry.sinks import tensorboard

        folder = Path(arguments.output or "runs")
        points = tensorboard.write(job.started, folder)
        document: dict[str, object] = {"name": job.name, "folder": str(folder / job.name), "points": points}
        answer.show(arguments, document, [f"{folder / job.name}"])
        return 0
    from ....telemetry.sinks import mlflow

    experiment = arguments.experiment or _EXPERIMENT
    found = mlflow.log(job.started, arguments.uri, experiment)
    answer.show(arguments, {"name": job.name, "experiment": experiment, "run": found}, [found])
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


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give one from 1 to 65535, or 0 for a free one")
    return int(text)
