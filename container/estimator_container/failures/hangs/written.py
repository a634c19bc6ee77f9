"""What the ranks of a host have written since somebody last looked: their lines, checkpoints, and steps."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from ...logs.frames import NO_RANK, STDERR, STDOUT, FrameParser
from ...training.page import StepCount, read_pages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...contract.names import Layout
    from ..horovod_stalls import Stall

MOST_READ = 1 << 16  # bytes of what is new in the log; where there is more, ranks have written
MOST_FILES = 1000  # of a checkpoint folder that are looked at


class LastStep(NamedTuple):
    """The last step that a rank has marked."""

    number: int
    age: float
    """Seconds since its end."""


class Written:
    """The ranks' part of a host's log, its checkpoint folder, and the pages on which they count their steps."""

    def __init__(self, layout: Layout) -> None:
        self._frames = layout.frames
        self._folder = layout.checkpoints
        self._pages = layout.training_steps
        self._read = 0
        self._newest = _newest(layout.checkpoints)
        self._checkpoint: float | None = None
        self._lines: dict[int, float] = {}
        self._counts: Sequence[StepCount] = ()

    def progressed(self, stall: Stall | None) -> bool:
        """Look whether there are new lines or checkpoints; what Horovod says of a stall, while one lasts, is none.

        It is for a thread of its own, because the files may be on a network that does not answer; all else here says
        what the last look has found. Where the log is gone, with an attempt that has ended, or its file system fails,
        nothing is known to be new.
        """
        self._counts = self._read_steps()
        newest = _newest(self._folder)
        try:
            size = os.path.getsize(self._frames)
            has_lines = size > self._read and self._has_lines(size, stall)
        except OSError:
            return False
        self._read = size
        has_checkpoint = newest > self._newest
        if has_checkpoint:
            self._newest, self._checkpoint = newest, time.time()
        return has_lines or has_checkpoint

    def output_age(self, rank: int) -> float | None:
        """Seconds since a rank's last line; None without one."""
        return round(time.time() - self._lines[rank], 1) if rank in self._lines else None

    @property
    def checkpoint_age(self) -> float | None:
        """Seconds since the checkpoint folder last changed; None where it has not."""
        return round(time.time() - self._checkpoint, 1) if self._checkpoint is not None else None

    def steps(self) -> dict[int, LastStep]:
        """The last training step of each rank that counts them."""
        now = time.monotonic_ns()
        return {
            NO_RANK if each.rank is None else each.rank: LastStep(each.number, round((now - each.last) / 1e9, 1))
            for each in self._counts
        }

    def _read_steps(self) -> Sequence[StepCount]:
        try:
            with open(self._pages, encoding="utf-8") as file:
                return read_pages(file.read())
        except OSError:
            return ()

    def _has_lines(self, size: int, stall: Stall | None) -> bool:
        with open(self._frames, "rb") as file:
            file.seek(max(self._read, size - MOST_READ))
            frames = FrameParser().feed(file.read(size - file.tell()))
        of_ranks = [frame for frame in frames if frame.stream in (STDOUT, STDERR)]
        self._lines.update((frame.rank, frame.time_ns / 1e9) for frame in of_ranks)
        if stall is None:
            return bool(of_ranks) or size - self._read > MOST_READ
        from ..horovod_stalls import left_without

        return bool(left_without(b"".join(frame.data for frame in of_ranks)))


def _newest(folder: str) -> int:
    """The time of the last change in a folder, in nanoseconds, as far as its first entries show."""
    times = [0]
    try:
        times.append(os.stat(folder).st_mtime_ns)
        with os.scandir(folder) as entries:
            times += [entry.stat(follow_symlinks=False).st_mtime_ns for entry, _ in zip(entries, range(MOST_FILES))]
    except OSError:
        pass  # it is gone, or changes at this moment
    return max(times)
