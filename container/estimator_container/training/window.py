"""A window of a rank's training that somebody wants to see in detail, from the end of one step to that of another.

A rank writes `NUMBER-RANK.json` when its window is over, with the names of the files of its recorders beside it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import time

from ..contract.names import name_of_rank
from ..runtime import private_folder
from . import recorders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .recorders import Recorder

MOST_STEPS = 100_000  # whose ends are kept: the first of a window


def name_of(number: int, rank: int | None, kind: str = "") -> str:
    """The file of a rank, or of one of its recorders.

    >>> name_of(7, 0), name_of(7, None, "torch")
    ('7-0.json', '7-script.torch.json')
    """
    return f"{number}-{name_of_rank(rank)}{kind and '.'}{kind}.json"


class Window:
    """What is recorded in this process. Whatever goes wrong is said in the file, and is not the script's concern."""

    def __init__(self, folder: str, rank: int | None, number: int) -> None:
        """Begin. `folder` is `Layout.timelines`."""
        self.number = number
        self._folder = folder
        self._rank = rank
        self._pid = os.getpid()
        self._steps: list[tuple[int, int]] = []
        self._said: list[str] = []
        self._running: list[Recorder] = []
        self._files: dict[str, str] = {}
        try:
            for each in recorders.recorders():
                self._start(each)
            if not self._running and not self._said and not recorders.uses_horovod():
                self._said.append("neither Horovod nor PyTorch runs in it, so there are its steps alone")
        except Exception as error:
            self._said.append(_sentence("recording", error))
        self._began = time.monotonic_ns()
        atexit.register(self.end)  # a script may be over before its window is

    def step_ended(self, step: int, now: int) -> None:
        """One more has, `now` on the monotonic clock."""
        if len(self._steps) < MOST_STEPS:
            self._steps.append((step, now))

    def end(self) -> None:
        """Write down what was recorded; the second time nothing."""
        atexit.unregister(self.end)
        if os.getpid() != self._pid:
            return  # a child of the rank
        ended = time.monotonic_ns()
        for each in self._running:
            try:
                each.stop()
                self._files[each.kind] = name_of(self.number, self._rank, each.kind)
            except Exception as error:
                self._said.append(_sentence(each.kind, error))
        with contextlib.suppress(OSError):  # on a full disk the window is lost, and nothing else
            self._write(ended)

    def _start(self, recorder: Recorder) -> None:
        try:
            recorder.start(os.path.join(self._folder, name_of(self.number, self._rank, recorder.kind)))
            self._running.append(recorder)
        except Exception as error:
            self._said.append(_sentence(recorder.kind, error))

    def _write(self, ended: int) -> None:
        since = time.time_ns() - time.monotonic_ns()
        document = {
            "rank": self._rank,
            "began": (since + self._began) / 1e9,
            "ended": (since + ended) / 1e9,
            "steps": [(step, (since + time) / 1e9) for step, time in self._steps],
            "files": self._files,
            "said": self._said,
        }
        private_folder.replace(os.path.join(self._folder, name_of(self.number, self._rank)), json.dumps(document))


def _sentence(kind: str, error: Exception) -> str:
    names = {"horovod": "Horovod's timeline", "torch": "PyTorch's profiler"}
    return f"{names.get(kind, kind)} recorded nothing: {error or type(error).__name__}"
