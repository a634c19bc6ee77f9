"""Which lines of a job are meant, and where a reader of them is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from estimator_container.contract.names import Layout
from estimator_container.logs.frames import NO_RANK, STREAM_NAMES

from ...errors import EstimatorError, InvalidArgument
from ...values.home import JobFolder
from ...values.naming import suggestion

if TYPE_CHECKING:
    from ...backends.port import StartedJob

_STREAMS = {name: number for number, name in STREAM_NAMES.items() if name != "event"}
_CURSOR = re.compile(r"(\d{1,6}:\d{1,15}:\d{1,7}(\.|$))*", re.ASCII)
_MOST_CURSOR = 1 << 16  # characters of a cursor that a client may send


class Place(NamedTuple):
    """Behind a line of one host's log: the frame in which the line ends, and how many lines end in it up to there."""

    offset: int
    """Bytes before that frame."""
    lines: int


Places = Mapping[int, Place]
"""The number of a host's log -> how far a reader is in it; where there is none, at its begin."""


class LogFile(NamedTuple):
    """The log of one host in one attempt."""

    number: int
    """Of the host among those of the job, from 0."""
    host: str
    path: Path


@dataclass(frozen=True)
class Selection:
    """Lines that are asked for."""

    files: tuple[LogFile, ...]
    rank: int | None = None
    """None means all, and the lines that are no rank's."""
    stream: int | None = None
    is_final: bool = True
    """Whether nothing more will be written."""

    def takes(self, rank: int, stream: int) -> bool:
        """Whether a frame of that rank and stream is meant; frames that are no rank's have `NO_RANK`."""
        return self.rank in (None, rank) and self.stream in (None, stream)


def select(job: StartedJob, attempt: int | None, host: str | None, rank: int | None, stream: str | None) -> Selection:
    """The lines of an attempt (None is the newest), as far as the rest chooses them.

    Raises InvalidArgument for what the job does not have, and EstimatorError for a job that runs elsewhere.
    """
    record = job.record()
    count = max(1, len(record.attempts))
    if attempt is not None and not 1 <= attempt <= count:
        raise InvalidArgument("attempt", f"attempt {attempt} does not exist; {job.name} has had {count}")
    if host is not None and host not in record.hosts:
        raise InvalidArgument("host", f"host {host!r} is not in this job; {suggestion(host, record.hosts)}")
    if stream is not None and stream not in _STREAMS:
        raise InvalidArgument("stream", f"stream {stream!r} is not known; {suggestion(stream, _STREAMS)}")
    hosts = _hosts_folder(job, attempt or count, count)
    files = tuple(
        LogFile(number, name, Path(Layout(str(hosts / name)).frames))
        for number, name in enumerate(record.hosts)
        if host in (None, name)
    )
    is_final = record.is_final or (attempt or count) < count
    return Selection(files, rank, None if stream is None else _STREAMS[stream], is_final)


def _hosts_folder(job: StartedJob, attempt: int, newest: int) -> Path:
    if not job.log_files():
        raise EstimatorError(
            f"the logs of {job.name} are not on this machine; read them with `estimator logs {job.name}`"
        )
    folder = JobFolder(job.path)
    left = folder.left(attempt)
    return left if attempt < newest or left.exists() else folder.hosts


def rank_of(number: int) -> int | None:
    """The rank of a frame as people are told it."""
    return None if number == NO_RANK else number


def encode(places: Places) -> str:
    """The places as a cursor."""
    return ".".join(f"{number}:{place.offset}:{place.lines}" for number, place in sorted(places.items()))


def decode(cursor: str) -> dict[int, Place]:
    """The way back from `encode`. Raises InvalidArgument for anything else."""
    if len(cursor) > _MOST_CURSOR or not _CURSOR.fullmatch(cursor):
        raise InvalidArgument("cursor", "cursor: this was not given by an earlier answer; leave it out to begin anew")
    parts = (part.split(":") for part in cursor.split(".") if part)
    return {int(number): Place(int(offset), int(lines)) for number, offset, lines in parts}
