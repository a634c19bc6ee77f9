"""`estimator doctor run [OPTIONS] -- COMMAND`: run a script several times with something left out, and compare."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from estimator_container.contract.names import DOCTOR
from estimator_container.training.boundaries import trial

from ...errors import InvalidArgument
from .. import answer
from ..parser import Parser, count
from . import run as run_command

if TYPE_CHECKING:
    from ...job.diagnosis.comparison import Comparison, Way
    from ...job.job import Job

LEAST_SECONDS = 3.0


def add(parser: Parser) -> None:
    run_command.add_job_options(parser)
    windows = parser.add_argument_group("windows")
    windows.add_argument("--rounds", metavar="N", type=count, default=3, help="how often each way is run (default: 3)")
    windows.add_argument(
        "--seconds", metavar="S", type=_seconds, default=10.0, help="of training steps in each run (default: 10)"
    )


def run(arguments: Namespace) -> int:
    for option in ("job_name", "checkpoint_s3_uri", "output_path"):
        if getattr(arguments, option) is not None:
            name = {"checkpoint_s3_uri": "checkpoint-uri"}.get(option, option.replace("_", "-"))
            what = f"--{name} has no place in a trial, which is run several times and keeps nothing"
            raise InvalidArgument(option, f"{what}; leave it out")
    found = compare(arguments)
    answer.show(arguments, found.to_json(), found.lines())
    return 0


def compare(arguments: Namespace) -> Comparison:
    """Run the ways by turns, round by round. What the runs leave is removed, but for the last one of the script as it
    is.
    """
    from ...job.diagnosis.comparison import Comparison, Way

    rates: dict[Way, list[float]] = {way: [] for way in Way}
    job: Job | None = None
    ways = [Way.REAL]
    for number in range(arguments.rounds):
        for way in [*ways[number % len(ways) :], *ways[: number % len(ways)]]:
            job = _window(arguments, way, number, rates, job)
        if number == 0:
            found = job.diagnose()  # type: ignore[union-attr]
            ways += [Way.REPLAYED]
            ways += [Way.NO_CHECKPOINTS] if any(rank.checkpoint is not None for rank in found.ranks) else []
            ways += [Way.ONE_RANK] if len(found.ranks) > 1 else []
            for way in ways[1:]:
                job = _window(arguments, way, number, rates, job)
    assert job is not None
    last = job.diagnose()
    return Comparison({way: each for way, each in rates.items() if each}, len(last.ranks), last)


def _window(arguments: Namespace, way: Way, number: int, rates: dict[Way, list[float]], kept: Job | None) -> Job | None:
    """Run one; returns the newest job of the script as it is, and removes what is not needed any more."""
    from ...estimator import windows
    from ...job.diagnosis.comparison import Way

    job, rate = windows.run(run_command.plan(_arguments_of(arguments, way)), arguments.seconds)
    rates[way].append(rate)
    print(f"estimator: run {number + 1} of {arguments.rounds}, {way.value}: {rate:.4g} steps/s", file=sys.stderr)
    if way is not Way.REAL:
        job.delete()
        return kept
    if kept is not None:
        kept.delete()
    return job


def _arguments_of(arguments: Namespace, way: Way) -> Namespace:
    from ...job.diagnosis.comparison import Way

    words = {Way.REPLAYED: trial.REPLAY, Way.NO_CHECKPOINTS: trial.NO_CHECKPOINTS}.get(way)
    changed: dict[str, object] = {"env": [*arguments.env, *([f"{DOCTOR}={words}"] if words else [])]}
    if way is Way.ONE_RANK:
        changed |= {"distributed": 1, "processes_per_host": 1}
    return Namespace(**{**vars(arguments), **changed})


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not LEAST_SECONDS <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from {LEAST_SECONDS:.0f} to 3600")
    return seconds
