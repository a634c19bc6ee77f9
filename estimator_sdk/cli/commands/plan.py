"""`estimator plan [OPTIONS] -- COMMAND`: show what `estimator run` would start."""

from __future__ import annotations

from argparse import Namespace

from .. import execution
from ..parser import Parser
from . import run as run_command


def add(parser: Parser) -> None:
    run_command.add_job_options(parser)


def run(arguments: Namespace) -> int:
    execution.show_plan(run_command.plan(arguments), arguments)
    return 0
