"""`estimator top [JOB]`: show what the machines and the ranks of a job do now."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING

from ....telemetry.sinks.needed import library
from ... import answer, job_argument
from ...parser import Parser

if TYPE_CHECKING:
    from ....backends.port import StartedJob
    from ....telemetry.board import Board, BoardReader

SECONDS = 2.0  # between two looks, as hosts measure


def add(parser: Parser) -> None:
    job_argument.add(parser)
    parser.add_argument("--once", action="store_true", help="show it once and exit, as where the output is no terminal")


def run(arguments: Namespace) -> int:
    from ....telemetry.board import BoardReader
    from ....telemetry.machines import logs_here

    job = job_argument.find(arguments)
    logs_here(job.started)
    reader = BoardReader(job.started)
    if arguments.json:
        answer.show(arguments, asdict(reader.read()), ())
        return 0
    library("rich", "top", "the board of a job")
    board = reader.read()
    if arguments.once or board.is_final or not sys.stdout.isatty():
        answer.write(_text(board))
    else:
        _follow(job.started, reader)
    return 0


def _text(board: Board) -> str:
    from rich.console import Console

    from ...reports import board_view

    width = None if sys.stdout.isatty() else 200
    console = Console(width=width)
    with console.capture() as capture:
        console.print(board_view.layout(board))
    return capture.get()


def _follow(job: StartedJob, reader: BoardReader) -> None:
    """Show the board until the job has ended or the user has seen enough."""
    from rich.live import Live

    from ...reports import board_view

    board = reader.read()
    with Live(board_view.layout(board), auto_refresh=False, screen=False) as live:
        while not board.is_final:
            job.wait(SECONDS - time.time() % SECONDS + 0.2)  # or to just after hosts have measured
            board = reader.read()
            live.update(board_view.layout(board), refresh=True)
