"""The metrics of a job's model as curves, which are read on from where they were read to."""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from estimator_container.contract.names import Layout
from estimator_container.logs.frames import EVENT, TOOLKIT, FrameParser
from estimator_container.logs.lines import LineAssembler
from estimator_container.telemetry.logged import LoggedValues, rank_of_file

from ..values.home import regular_file
from .curve import MOST_POINTS, Curve, CurvePart
from .log_values import StreamValues
from .machines import host_of
from .metrics import metric_definitions

if TYPE_CHECKING:
    from estimator_container.logs.frames import Frame
    from estimator_container.logs.lines import Block

    from ..backends.port import StartedJob

READ_SIZE = 1 << 20  # bytes of a file taken at a time
MOST_CURVES = 50_000
"""Of a job; who logs under ever new names has no curves of the others."""
LOGGED, DEFINED, PLAIN = range(3)
"""Where a value comes from: the script's call, a definition of the job, the look of a line. Of one rank's values of one
name only those of the first of these that there are make a curve."""


class ModelValue(NamedTuple):
    """One value of a metric of the model."""

    name: str
    host: str
    rank: int | None
    """None for a script without a world."""
    step: int
    """Where the script tells none, values are counted from 1."""
    time: float
    """Seconds since 1970."""
    value: float


class _CurveKey(NamedTuple):
    name: str
    host: str
    rank: int | None
    origin: int


def tell_values(job: StartedJob, on_value: Callable[[ModelValue], None]) -> None:
    """Call back for every value that makes the curves of a job, as far as it is written. All is read twice for that."""
    shown = Curves(job)
    shown.refresh()
    again = Curves(job)
    again.on_value = lambda key, value: on_value(value) if shown.is_shown(key) else None
    again.refresh()


class Curves:
    """The metrics of a job, as far as they have been read."""

    def __init__(self, job: StartedJob, points: int = MOST_POINTS) -> None:
        """Nothing is read before `refresh`; of no curve more than `points` points are kept."""
        self._job = job
        self._points = points
        self._definitions = metric_definitions(job)
        self._logs: dict[tuple[int, int], _LogTail] = {}
        self._logged: dict[tuple[int, int], _LoggedTail] = {}
        self._curves: dict[_CurveKey, Curve] = {}
        self._changed: dict[_CurveKey, int] = {}
        self.cursor = 0
        """How many values have been read."""
        self.on_value: Callable[[_CurveKey, ModelValue], None] | None = None
        """Called with each value that is read."""

    def refresh(self) -> int:
        """Read what the job has written since the last call; returns how many values that were.

        Of a job that runs elsewhere all is read again.
        """
        before = self.cursor
        files = self._job.log_files()
        if not files:
            self._read_elsewhere()
        for log in files:
            self._read_logged(log)
            self._read_log(log)
        return self.cursor - before

    @property
    def names(self) -> list[str]:
        """The names of the metrics, in the order in which they came."""
        return list(dict.fromkeys(key.name for key in self._curves))

    def parts(
        self, since: int = 0, names: Collection[str] | None = None, ranks: Collection[int | None] | None = None
    ) -> list[CurvePart]:
        """What has changed of the curves since `cursor` was `since`; by names, and then by ranks.

        A curve of which nothing has changed is left out. Of one that has changed there are the points from the first
        new one on; `begins` is its place.
        """
        shown = [key for key in self._curves if self.is_shown(key) and self._changed[key] > since]
        chosen = [key for key in shown if (names is None or key.name in names) and (ranks is None or key.rank in ranks)]
        order = {name: place for place, name in enumerate(self.names)}
        chosen.sort(key=lambda key: (order[key.name], -1 if key.rank is None else key.rank, key.host))
        parts = (self._curves[key].part(since) for key in chosen)
        return [part for part in parts if part is not None]

    def is_shown(self, key: _CurveKey) -> bool:
        """Whether the values of this origin make the curve."""
        return not any(key._replace(origin=better) in self._curves for better in range(key.origin))

    def _take(self, key: _CurveKey, step: int | None, time: float, value: float) -> None:
        self.cursor += 1
        curve = self._curves.get(key)
        if curve is None:
            if len(self._curves) >= MOST_CURVES:
                return
            curve = self._curves[key] = Curve(key.name, key.host, key.rank, self._points)
        self._changed[key] = self.cursor
        curve.add(step, time, value, self.cursor)
        if self.on_value is not None:
            said = curve.values if step is None else step
            self.on_value(key, ModelValue(key.name, key.host, key.rank, said, time, value))

    def _read_logged(self, log: Path) -> None:
        folder, host = log.parent / Path(Layout("").logged_metrics).name, host_of(log)
        for path in _listed(folder):
            identity = _identity(path)
            if identity is None:  # a script may make anything here
                continue
            if identity not in self._logged:
                try:
                    self._logged[identity] = _LoggedTail(rank_of_file(path.name))
                except ValueError:  # somebody else's
                    continue
            tail = self._logged[identity]
            for data in tail.read(path):
                for found in tail.values.feed(data):
                    self._take(_CurveKey(found.name, host, tail.rank, LOGGED), found.step, found.time, found.value)

    def _read_log(self, log: Path) -> None:
        identity = _identity(log)  # it may be set aside, and keeps this
        if identity is None:
            return
        tail = self._logs.setdefault(identity, _LogTail(host_of(log)))
        for data in tail.read(log):
            for block in tail.blocks(data):
                self._take_block(block, tail.streams)

    def _take_block(self, block: Block, streams: dict[tuple[int | None, str], StreamValues]) -> None:
        stream = streams.get((block.rank, block.stream))
        if stream is None:
            stream = streams[block.rank, block.stream] = StreamValues(self._definitions)
        for found in stream.of_block(block):
            origin = DEFINED if found.is_defined else PLAIN
            self._take(
                _CurveKey(found.name, block.host, block.rank, origin), found.step, block.time_ns / 1e9, found.value
            )

    def _read_elsewhere(self) -> None:
        self._curves.clear()
        streams: dict[str, dict[tuple[int | None, str], StreamValues]] = {}
        for block in self._job.blocks(follow=False):
            if block.stream != "toolkit":
                self._take_block(block, streams.setdefault(block.host, {}))


class _FileTail:
    """How far a file has been read."""

    def __init__(self) -> None:
        self._at = 0

    def read(self, path: Path) -> Iterator[bytes]:
        """What has been written since the last call. A file that has just been set aside is read the next time."""
        try:
            with open(path, "rb", opener=regular_file) as file:
                file.seek(self._at)
                while data := file.read(READ_SIZE):
                    self._at += len(data)
                    yield data
        except FileNotFoundError:
            return


class _LogTail(_FileTail):
    """The framed log of a host in an attempt."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self.streams: dict[tuple[int | None, str], StreamValues] = {}
        self._parser = FrameParser()
        self._assembler = LineAssembler(host)

    def blocks(self, data: bytes) -> Iterator[Block]:
        """The lines of ranks that are completed."""
        frames: list[Frame] = self._parser.feed(data)
        for frame in frames:
            block = self._assembler.feed(frame) if frame.stream not in (EVENT, TOOLKIT) else None
            if block is not None:
                yield block


class _LoggedTail(_FileTail):
    """What a process of a rank has logged."""

    def __init__(self, rank: int | None) -> None:
        super().__init__()
        self.rank = rank
        self.values = LoggedValues()


def _listed(folder: Path) -> list[Path]:
    """Its entries in order; none where there is no such folder, or none any more: it may just have been set aside."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _identity(path: Path) -> tuple[int, int] | None:
    """What a file keeps as it is set aside; None for what is none, or is not there any more."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
