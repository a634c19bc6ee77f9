"""`estimator doctor run [OPTIONS] -- COMMAND`: run a script several times with something different, and compare."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...errors import InvalidArgument
from .. import answer
from ..parser import Parser, count
from . import run as run_command

if TYPE_CHECKING:
    from ...plan.plan import Plan

LEAST_SECONDS = 3.0


def add(parser: Parser) -> None:
    run_command.add_job_options(parser)
    windows = parser.add_argument_group("windows")
    windows.add_argument("--rounds", metavar="N", type=count, default=3, help="how often each way is run (default: 3)")
    windows.add_argument(
        "--seconds", metavar="S", type=_seconds, default=10.0, help="of training steps in each run (default: 10)"
    )
    windows.add_argument("--picture", metavar="FILE", help="write the rates as a picture, in SVG")
    windows.add_argument(
        "--try", dest="try_advice", action="store_true", help="try the advice too, each piece in runs of its own"
    )


def run(arguments: Namespace) -> int:
    from ...estimator.trials.comparing import Runs

    for option in ("job_name", "checkpoint_s3_uri", "output_path"):
        if getattr(arguments, option) is not None:
            name = {"checkpoint_s3_uri": "checkpoint-uri"}.get(option, option.replace("_", "-"))
            what = f"--{name} has no place in a trial, which is run several times and keeps nothing"
            raise InvalidArgument(option, f"{what}; leave it out")
    picture = None if arguments.picture is None else answer.file_to_write("picture", arguments.picture)

    def plan(more: Mapping[str, str], is_alone: bool) -> Plan:
        kept = [pair for pair in arguments.env if pair.partition("=")[0] not in more]
        env = [*kept, *(f"{name}={value}" for name, value in more.items())]
        alone = {"distributed": 1, "processes_per_host": 1} if is_alone else {}
        return run_command.plan(Namespace(**{**vars(arguments), "env": env, **alone}))

    def say(words: str) -> None:
        print(f"estimator: {words}", file=sys.stderr)

    runs = Runs(plan, arguments.seconds, arguments.rounds, say, has_channels=bool(arguments.input))
    found = runs.compare(arguments.try_advice)
    if picture is not None:
        picture.write_text(found.to_svg(), encoding="utf-8")
    answer.show(arguments, found.to_json(), found.lines())
    return 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not LEAST_SECONDS <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from {LEAST_SECONDS:.0f} to 3600")
    return seconds
