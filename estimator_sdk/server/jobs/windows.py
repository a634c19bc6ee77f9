"""Windows of the timeline that the page asks for, each recorded by `estimator timeline` in a process of its own.

What a window has may be hundreds of megabytes: merging it here would hold up everything else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import EstimatorError
from ...job.traces import window

if TYPE_CHECKING:
    from ...backends.port import StartedJob

_MOST = 4
"""Windows that are recorded at a time."""
_KEPT = 32


@dataclass
class _Run:
    """One window."""

    seconds: float
    began: float = field(default_factory=time.time)
    is_over: bool = False
    said: tuple[str, ...] = ()
    """What the window has not, or why there is none."""
    has_failed: bool = False


class WindowRuns:
    """The last one of each job. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, _Run] = OrderedDict()

    def begin(self, job: StartedJob, seconds: float) -> str:
        """Begin to record a window; returns a sentence. Raises EstimatorError."""
        if job.record().is_final:
            raise EstimatorError(f"{job.name} has ended, and a window is recorded while a job runs")
        with self._lock:
            busy = [name for name, run in self._runs.items() if not run.is_over]
            if job.name in busy:
                raise EstimatorError(f"a window of {job.name} is being recorded; wait for its end")
            if len(busy) >= _MOST:
                raise EstimatorError(f"{_MOST} windows are being recorded; wait for the end of one")
            run = self._runs[job.name] = _Run(seconds)
            self._runs.move_to_end(job.name)
            while len(self._runs) > _KEPT:
                self._runs.pop(next(name for name, each in self._runs.items() if each.is_over))
        threading.Thread(target=_record, args=(job.name, run), name="window", daemon=True).start()
        return f"the ranks of {job.name} record {seconds:g} s from their next step on"

    def state(self, job: StartedJob) -> dict[str, object]:
        """How far the last one is, and whether there is a trace to be had."""
        with self._lock:
            run = self._runs.get(job.name)
        kept = window.kept(job)
        return {
            "is_recording": run is not None and not run.is_over,
            "seconds": run.seconds if run else None,
            "began": run.began if run else None,
            "has_failed": run is not None and run.has_failed,
            "said": list(run.said) if run else [],
            "size": kept.stat().st_size if kept else None,
        }


def _record(name: str, run: _Run) -> None:
    words = [sys.executable, "-m", "estimator_sdk", "timeline", name, "--json", "--output", os.devnull]
    try:
        done = subprocess.run(
            [*words, "--seconds", str(run.seconds)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            run.said = tuple(json.loads(done.stdout)["notes"])
        else:
            run.has_failed = True
            run.said = (done.stderr.strip().removeprefix("estimator timeline: ") or f"it ended with {done.returncode}",)
    except (OSError, ValueError, LookupError) as error:
        run.has_failed, run.said = True, (f"it could not be recorded: {error}",)
    finally:
        run.is_over = True
