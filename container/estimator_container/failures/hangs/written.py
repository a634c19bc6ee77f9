"""What the ranks of a host have written since somebody last looked: their lines, and checkpoints."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ...logs.frames import STDERR, STDOUT, FrameParser

if TYPE_CHECKING:
    from ..horovod_stalls import Stall

MOST_READ = 1 << 16  # bytes of what is new in the log; where there is more, ranks have written
MOST_FILES = 1000  # of a checkpoint folder that are looked at


class Written:
    """The ranks' part of a host's log, and its checkpoint folder."""

    def __init__(self, frames: str, checkpoints: str) -> None:
        self._frames = frames
        self._folder = checkpoints
        self._read = 0
        self._newest = _newest(checkpoints)
        self._checkpoint: float | None = None
        self._lines: dict[int, float] = {}

    def progressed(self, stall: Stall | None) -> bool:
        """Whether there are new lines or checkpoints; what Horovod says of a stall, while one lasts, is none."""
        size, newest = os.path.getsize(self._frames), _newest(self._folder)
        has_lines = size > self._read and self._has_lines(size, stall)
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
