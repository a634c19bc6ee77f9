"""The options that choose among a job's log lines, and how a line is shown."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...display.live_line import CLEAR, LiveLine
from ...job.job import Job
from ...job.log_selection import STREAMS
from ...values.standard_streams import can_redraw, put
from ..parser import Parser

if TYPE_CHECKING:
    from estimator_container.logs.lines import Line


def add(parser: Parser) -> None:
    """Add the options that choose among log lines: `--rank`, `--host`, `--stream` and `--grep`."""
    parser.add_argument("--rank", metavar="N[,N…]", type=_ranks, help="only the lines of these ranks")
    parser.add_argument("--host", metavar="HOST", help="only the lines of one host, such as algo-2")
    parser.add_argument("--stream", choices=STREAMS, help="only the lines of one stream")
    parser.add_argument("--grep", metavar="REGEX", type=_pattern, help="only the lines that match")


def lines(job: Job, arguments: Namespace, follow: bool) -> Iterator[Line]:
    """The lines that the options choose. Raises InvalidArgument for a host that the job does not have.

    A terminal shows meanwhile how a line goes on that has no end yet, as far as the options choose it.
    """
    live = _Live(arguments) if follow and not arguments.json and can_redraw(sys.stdout) else None
    shows = None if live is None else live.on_open_line
    try:
        for line in job._lines(None, arguments.host, arguments.stream, follow, shows):
            if _is_chosen(line, arguments):
                if live is not None:
                    live.clear()
                yield line
    finally:
        if live is not None:
            live.clear()


class _Live:
    """The last line of the terminal on standard output."""

    def __init__(self, arguments: Namespace) -> None:
        self._arguments = arguments
        self._line = LiveLine()
        self._is_open = False

    def on_open_line(self, line: Line) -> None:
        chosen = (self._arguments.host in (None, line.host)) and (self._arguments.stream in (None, line.stream))
        text = self._line.text_of(line) if chosen and _is_chosen(line, self._arguments) else None
        if text is not None:
            put(sys.stdout, text)
            self._is_open = True

    def clear(self) -> None:
        if self._is_open:
            put(sys.stdout, CLEAR)
            self._is_open = False


def _is_chosen(line: Line, arguments: Namespace) -> bool:
    if arguments.rank is not None and line.rank not in arguments.rank:
        return False
    return (
        arguments.grep is None or arguments.grep.search(line.data.decode("utf-8", "replace").rstrip("\n")) is not None
    )


def shown(line: Line, arguments: Namespace) -> bytes:
    """A line as `run` shows it; with `--json` as one document on a line."""
    if not arguments.json:
        return line.tagged()
    document = {
        "time": line.time_ns / 1e9,
        "host": line.host,
        "rank": line.rank,
        "stream": line.stream,
        "text": line.data.decode("utf-8", "backslashreplace").rstrip("\n"),
    }
    return json.dumps(document).encode() + b"\n"


def _ranks(text: str) -> frozenset[int]:
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text, re.ASCII):
        raise ArgumentTypeError(f"{text!r} is not a rank or a comma-separated list of ranks")
    return frozenset(map(int, text.split(",")))


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ArgumentTypeError(f"{text!r} is not a pattern: {error}") from None
