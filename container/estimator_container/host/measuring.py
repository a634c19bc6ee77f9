"""The program that measures this host and its ranks, from its start to its end."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from .. import telemetry
from ..contract.names import TELEMETRY

if TYPE_CHECKING:
    from ..logs.events import ProgramOutput
    from .spec import HostSpec
    from .toolkit import Toolkit

MEASURE = os.path.join(os.path.dirname(telemetry.__file__), "measure.py")
START_SECONDS = 1.0  # after which it is started: a job that ends before is not measured


class Measuring:
    """Of one attempt. What goes wrong in it is said once in the log, and ends nothing."""

    def __init__(self, spec: HostSpec, toolkit: Toolkit) -> None:
        self._folder = spec.layout.telemetry
        self._toolkit = toolkit
        self._ranks = os.path.join(toolkit.scratch, "ranks")
        self._output: ProgramOutput | None = None
        # Where nobody reads the frames, nobody would read this either: the platform measures by itself.
        self._is_wanted = not spec.settings.shows_console and os.environ.get(TELEMETRY, "").lower() != "off"
        with contextlib.suppress(OSError):
            os.unlink(self._ranks)
        if self._is_wanted:
            self._timer = toolkit.loop.after(START_SECONDS, self._start)

    def rank_started(self, rank: int, pid: int) -> None:
        """Measure this rank too, from now on; `pid` is that of its script."""
        if self._is_wanted:
            with contextlib.suppress(OSError), open(self._ranks, "a", encoding="ascii") as file:
                file.write(f"{rank} {pid}\n")

    def close(self) -> None:
        """Start it no more; one that runs is ended with all programs of the host."""
        if self._is_wanted:
            self._timer.cancel()

    def _start(self) -> None:
        argv = [sys.executable, "-I", "-S", MEASURE, self._folder, self._ranks]
        with contextlib.suppress(OSError):
            self._output = self._toolkit.start_program(argv, os.environ, self._ended)

    def _ended(self, code: int) -> None:
        if self._output is not None:
            self._output.finish()
