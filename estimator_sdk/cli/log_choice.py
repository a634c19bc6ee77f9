"""The options that choose among a job's log lines, and how a line is shown."""

from __future__ import annotations

import json
import re
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..job import STREAMS, Job
from .parser import Parser

if TYPE_CHECKING:
    from estimator_container.lines import Line


def add(parser: Parser) -> None:
    parser.add_argument("--rank", metavar="N[,N…]", type=_ranks, help="only the lines of these ranks")
    parser.add_argument("--host", metavar="HOST", help="only those of one host, such as algo-2")
    parser.add_argument("--stream", choices=STREAMS, help="only those of one stream")
    parser.add_argument("--grep", metavar="REGEX", type=_pattern, help="only those in which this is found")


def lines(job: Job, arguments: Namespace, follow: bool) -> Iterator[Line]:
    """The lines that the options choose. Raises InvalidArgument for a host that the job does not have."""
    for line in job.logs(host=arguments.host, stream=arguments.stream, follow=follow):
        if arguments.rank is not None and line.rank not in arguments.rank:
            continue
        if arguments.grep is None or arguments.grep.search(line.data.decode("utf-8", "replace").rstrip("\n")):
            yield line


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
    if not re.fullmatch(r"\d+(,\d+)*", text, re.ASCII):
        raise ArgumentTypeError(f"{text!r} is not a rank, or several with commas between them")
    return frozenset(map(int, text.split(",")))


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ArgumentTypeError(f"{text!r} is no pattern: {error}") from None
