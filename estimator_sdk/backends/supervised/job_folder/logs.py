"""Read and follow the logs of a local job, from any process, while it runs and after it has ended."""

from __future__ import annotations

import contextlib
import heapq
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from estimator_container.contract.event_decoding import decode
from estimator_container.contract.names import Layout
from estimator_container.logs.frames import EVENT, Frame, FrameParser
from estimator_container.logs.lines import Block, Line, LineAssembler

from ....values.home import JobFolder, opened
from ...port import OnEvent, OnOpenLine
from ..watch import Watch
from .record import Record

READ_SIZE = 1 << 20  # bytes of one host's log taken at a time
RUSH_SECONDS = 0.002  # between two changes: then ranks write without a pause
NAP_SECONDS = 0.001  # in such a rush, for what comes together is read with less work
NEWS_SECONDS = 0.1  # between two tellings of lines that grow


class HostLog:
    """Reads one host's frames as far as they are written, again and again."""

    def __init__(self, host: str, file: BinaryIO, on_event: OnEvent | None = None) -> None:
        self._host = host
        self._on_event = on_event
        self._parser = FrameParser()
        self._assembler = LineAssembler(host)
        self._file = file

    def new_blocks(self) -> Iterator[Block]:
        """The lines that have been completed since the last call."""
        while data := self._file.read(READ_SIZE):
            yield from self._blocks(self._parser.feed(data))

    @property
    def has_news(self) -> bool:
        """Whether a line that has no end yet has grown since `news` was asked."""
        return self._assembler.has_news

    def news(self) -> Iterator[Line]:
        """The newest states of such lines."""
        return self._assembler.news()

    def last_blocks(self) -> Iterator[Block]:
        """What is left when nothing more will be written.

        Only who opens a file is sure to see what another machine has written to it before it said so: nfs(5), "Data and
        metadata coherence".
        """
        with contextlib.suppress(OSError):
            os.close(os.open(f"/proc/self/fd/{self._file.fileno()}", os.O_RDONLY))
        yield from self.new_blocks()
        yield from self._blocks(self._parser.finish())
        yield from self._assembler.flush()
        self._file.close()

    def _blocks(self, frames: list[Frame]) -> Iterator[Block]:
        for frame in frames:
            if frame.stream == EVENT and self._on_event is not None:
                self._tell(frame.data)
            block = self._assembler.feed(frame)
            if block is not None:
                yield block

    def _tell(self, data: bytes) -> None:
        event = decode(data)  # None for one that was cut short, as by a full disk
        if self._on_event is not None and event is not None:
            self._on_event(self._host, event)


class _Teller:
    """Tells of lines that grow: at once, and at most every `NEWS_SECONDS`."""

    def __init__(self, on_open_line: OnOpenLine | None) -> None:
        self._on_open_line = on_open_line
        self._told_at = 0.0

    def tell(self, logs: list[HostLog]) -> float | None:
        """Tell what is due; returns the seconds until more is, None where there is nothing."""
        if self._on_open_line is None or not any(log.has_news for log in logs):
            return None
        wait = self._told_at + NEWS_SECONDS - time.monotonic()
        if wait > 0:
            return wait
        for log in logs:
            for line in log.news():
                self._on_open_line(line)
        self._told_at = time.monotonic()
        return None


def log_file(hosts: Path, host: str) -> Path:
    """The log of a host below `JobFolder.hosts`, or what is left of that."""
    return Path(Layout(str(hosts / host)).frames)


def open_logs(folder: JobFolder, record: Record, attempt: int, on_event: OnEvent | None = None) -> list[HostLog]:
    """The logs of an attempt that has begun, of the hosts that have one."""
    files = ((host, _open(folder, attempt, host)) for host in record.hosts)
    return [HostLog(host, file, on_event) for host, file in files if file is not None]


def _open(folder: JobFolder, attempt: int, host: str) -> BinaryIO | None:
    aside = log_file(folder.left(attempt), host)
    if not aside.is_file():
        file = opened(log_file(folder.hosts, host))
        if not aside.is_file():
            return file
        if file is not None:  # it may be the next attempt's: that is made when this one's has been set aside
            file.close()
    return opened(aside)


def read(folder: JobFolder, record: Record, on_event: OnEvent | None = None) -> Iterator[Block]:
    """All lines written so far, of all hosts and attempts, merged by time."""
    for attempt in range(1, record.attempt + 1):
        yield from _merged(folder, record, attempt, on_event)


def _merged(folder: JobFolder, record: Record, attempt: int, on_event: OnEvent | None = None) -> Iterator[Block]:
    logs = open_logs(folder, record, attempt, on_event)
    yield from heapq.merge(*(log.last_blocks() for log in logs), key=lambda block: block.time_ns)


def follow(
    folder: JobFolder,
    state: Callable[[], Record],
    watch: Watch,
    on_event: OnEvent | None = None,
    on_open_line: OnOpenLine | None = None,
) -> Iterator[Block]:
    """All lines from the first, then new ones as they are written, until `state` says that the job has ended.

    After the last line the job's record is final. A consumer that is slow delays nobody: the lines
    wait in the files. `on_open_line` is told, between two lines, how those go on that have no end yet.
    """
    attempt, logs, teller = 0, list[HostLog](), _Teller(on_open_line)
    looked_at = 0.0
    try:
        while True:
            record = state()
            if record.attempt != attempt:
                yield from (block for log in logs for block in log.last_blocks())
                for missed in range(attempt + 1, record.attempt):  # one that ended between two looks
                    yield from _merged(folder, record, missed, on_event)
                attempt = record.attempt
                for host in record.hosts:
                    watch.add(log_file(folder.hosts, host))
                logs = open_logs(folder, record, attempt, on_event)
            for log in logs:
                yield from log.new_blocks()
            if record.is_final:
                yield from (block for log in logs for block in log.last_blocks())
                return
            watch.wait(teller.tell(logs))
            now = time.monotonic()
            if now - looked_at < RUSH_SECONDS:
                time.sleep(NAP_SECONDS)
            looked_at = now
    finally:
        watch.close()
