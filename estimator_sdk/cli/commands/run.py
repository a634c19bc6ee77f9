"""`estimator run [OPTIONS] -- COMMAND`: run a command on one or many hosts."""

from __future__ import annotations

import os
import sys
import threading
from argparse import Namespace, _ActionsContainer
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...code.ignore_rules import FILE as IGNORE_FILE
from ...errors import InvalidArgument
from ...spec.limits import DEFAULT_MAX_RUN
from .. import backend_argument, execution
from ..parser import Parser, count

if TYPE_CHECKING:
    from ...backends.slurm.options import SlurmOptions
    from ...plan.plan import Plan

_SLOW = 3.0  # seconds that a person waits for the code to be put together without a word
_AS_THEY_ARE = (
    *("role", "instance_type", "backend", "image_uri", "cpus", "memory", "gpus", "output_path"),
    *("checkpoint_s3_uri", "max_run", "max_retry_attempts", "hosts", "hostfile", "queue"),
)
"""The options that an Estimator takes under their own names."""
_PAIRS = {
    "--env": "NAME=VALUE",
    "--input": "CHANNEL=URI",
    "--metric": "NAME=REGEX",
    "--tag": "KEY=VALUE",
    "--slurm": "KEY=VALUE",
}


def add(parser: Parser) -> None:
    add_job_options(parser)
    execution.add_options(parser)


def run(arguments: Namespace) -> int:
    return execution.execute(plan(arguments), arguments)


def add_job_options(parser: Parser) -> None:
    """The options that say what runs, and the command behind `--`."""
    parser.take_command()
    where = parser.add_argument_group("where")
    where.add_argument(
        "-t", "--instance-type", metavar="TYPE", default="local", help="such as local, slurm or ml.g5.12xlarge"
    )
    where.add_argument(
        "-d",
        "--distributed",
        metavar="N",
        type=count,
        help="an MPI world across N hosts; 1 means several processes on one host (default: run the command once)",
    )
    where.add_argument(
        "--processes-per-host", metavar="P", type=count, help="default: one for each GPU of the instance type, else one"
    )
    backend_argument.add(where, "chosen by the instance type")
    where.add_argument(
        "--image",
        metavar="IMAGE",
        dest="image_uri",
        help="the container image (default on docker: estimator/mpi:py311)",
    )
    where.add_argument("--cpus", type=float, help="CPUs per host, if hosts are containers or nodes of Slurm")
    where.add_argument("--memory", metavar="GIB", type=float, help="memory per host, likewise")
    where.add_argument("--gpus", metavar="N", type=count, help="GPUs per host, if hosts are nodes of Slurm")
    where.add_argument("--role", metavar="ARN", help="the IAM role, on SageMaker")
    where.add_argument(
        "--slurm",
        metavar=_PAIRS["--slurm"],
        action="append",
        default=[],
        help="an option of sbatch, on Slurm, such as account=lab or gpus_per_node=4",
    )
    _add_pool_options(where)
    what = parser.add_argument_group("what")
    what.add_argument("--source-dir", metavar="DIR", default=".", help="the folder to copy and run in")
    what.add_argument("--env", metavar=_PAIRS["--env"], action="append", default=[], help="a variable for the command")
    what.add_argument(
        "--inherit-env",
        metavar="NAME",
        action="append",
        help="pass this variable of the shell, or those matching the pattern, such as 'AWS_*', to the command; "
        "or 'all', or 'none' except what a start needs (default: all where hosts are processes here, else none)",
    )
    what.add_argument(
        "--input", metavar=_PAIRS["--input"], action="append", default=[], help="data: s3://…, file://… or a path"
    )
    what.add_argument("--output-path", metavar="URI", help="where the model and outputs go")
    what.add_argument("--checkpoint-uri", metavar="URI", dest="checkpoint_s3_uri", help="where checkpoints are kept")
    what.add_argument("--metric", metavar=_PAIRS["--metric"], action="append", default=[], help="a metric in the log")
    what.add_argument("--tag", metavar=_PAIRS["--tag"], action="append", default=[], help="a label of the job")
    what.add_argument("--job-name", metavar="NAME", help="the job's name (default: a new one)")
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max-run", metavar="SECONDS", type=count, default=DEFAULT_MAX_RUN, help="stop the job after this many seconds"
    )
    limits.add_argument("--stop-timeout", metavar="SECONDS", type=float, help="seconds between SIGTERM and SIGKILL")
    limits.add_argument("--max-retry-attempts", metavar="N", type=count, help="restarts after failures of the platform")


def _add_pool_options(where: _ActionsContainer) -> None:
    where.add_argument(
        "--hosts", metavar="HOSTS", help="machines that are reached by ssh, with slots or not, such as a:4,user@b:4"
    )
    where.add_argument("--hostfile", metavar="FILE", help="a file that names them instead, such as one of Open MPI's")
    where.add_argument("--queue", action="store_true", help="wait until these machines have room beside other jobs")


def plan(arguments: Namespace) -> Plan:
    """The plan of the job that the options and the command say. Raises InvalidArgument."""
    from ...estimator import launch
    from ...estimator.command_line import estimator_arguments
    from ...estimator.estimator import Estimator

    given: dict[str, Any] = {
        **{name: getattr(arguments, name) for name in _AS_THEY_ARE},
        "instance_count": arguments.distributed or 1,
        "distribution": _distribution(arguments),
        "environment": _pairs("--env", arguments.env) or None,
        "inherit_environment": _inherited(arguments.inherit_env),
        "metric_definitions": [{"Name": n, "Regex": r} for n, r in _pairs("--metric", arguments.metric).items()]
        or None,
        "tags": _pairs("--tag", arguments.tag) or None,
        **({} if arguments.stop_timeout is None else {"stop_timeout": arguments.stop_timeout}),
    }
    inputs = {name: _uri(name, place) for name, place in _pairs("--input", arguments.input).items()}
    estimator = Estimator(
        **estimator_arguments(arguments.command, arguments.source_dir), **given, slurm=_slurm(arguments.slurm)
    )
    # The folder is whatever somebody works in, and not, as an Estimator's, one that was made to be sent.
    source = estimator.source and replace(estimator.source, with_git=True)
    return launch.plan(
        source,
        lambda code: estimator.spec(inputs or None, arguments.job_name, code_uri=code),
        estimator.backend,
        estimator.code_location,
        while_bundling=_note_if_slow(arguments.source_dir),
    )


@contextmanager
def _note_if_slow(folder: str) -> Iterator[None]:
    """Who started it in a folder of data should not wait without knowing for what."""
    where = os.path.abspath(folder)  # noqa: PTH100 - as the user sees it
    words = f"copying {where} takes a while; list what to leave out in its {IGNORE_FILE}"
    note = threading.Timer(_SLOW, lambda: print(f"estimator: {words}", file=sys.stderr, flush=True))
    note.daemon = True
    note.start()
    try:
        yield
    finally:
        note.cancel()


def _distribution(arguments: Namespace) -> dict[str, object] | None:
    if arguments.distributed is None:
        if arguments.processes_per_host is not None:
            what = "--processes-per-host has no effect without --distributed"
            raise InvalidArgument("processes_per_host", f"{what}; add --distributed 1 for one machine")
        return None
    processes = arguments.processes_per_host
    return {"mpi": {"enabled": True, **({} if processes is None else {"processes_per_host": processes})}}


def _inherited(named: list[str] | None) -> bool | list[str] | None:
    words = {"all": True, "none": False}
    return words[named[0]] if named and len(named) == 1 and named[0] in words else named


def _slurm(given: list[str]) -> SlurmOptions | None:
    if not given:
        return None
    from ...backends.slurm.options import SlurmOptions

    return SlurmOptions.from_words(_pairs("--slurm", given))


def _pairs(option: str, given: list[str]) -> dict[str, str]:
    """What an option says that is given several times. Raises InvalidArgument for a word without `=`."""
    found: dict[str, str] = {}
    for word in given:
        name, separator, value = word.partition("=")
        if not name or not separator:
            raise InvalidArgument(
                option[2:], f"{option} {word!r} is not of the form {_PAIRS[option]}; write it that way"
            )
        if name in found:
            raise InvalidArgument(option[2:], f"{option} {name!r} is given twice; leave one of them out")
        found[name] = value
    return found


def _uri(channel: str, place: str) -> str:
    if "://" in place:
        return place
    path = Path(place).absolute()
    if not path.exists():
        raise InvalidArgument("input", f"--input {channel}={place!r}: there is no such file or folder; fix the path")
    return f"file://{path}"
