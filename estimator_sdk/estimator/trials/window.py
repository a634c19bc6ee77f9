"""Running a job for a while only, to learn how fast its steps are."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import EstimatorError
from ...job.diagnosis import causes, step_records
from .. import launch

if TYPE_CHECKING:
    from ...job.diagnosis.step_records import StepSample
    from ...job.job import Job
    from ...job.timeline import Who
    from ...plan.plan import Plan

LOOK_SECONDS = 0.5
PATIENCE = 600.0
"""Seconds until the first steps, after which a window is given up."""
WARM_UP = 1.0
"""Seconds of steps that are left out at the beginning."""


@dataclass(frozen=True)
class WindowPace:
    """How fast a job makes its steps."""

    rate: float
    """In steps a second of the rank that makes fewest."""
    input: float | None
    """What share of a step a rank waits for input, the mean over the ranks; None where that is not known."""

    def __str__(self) -> str:
        waits = "" if self.input is None else f", of which {100 * self.input:.1f} % wait for input"
        return f"{self.rate:.4g} steps/s{waits}"


def run(plan: Plan, seconds: float, steps_before: int = 0) -> tuple[Job, WindowPace]:
    """Run a plan until all its ranks have made steps for so many seconds, then stop it; returns its pace.

    The first second, and the steps that are to come before, are left out.

    Raises JobFailed where it fails, and EstimatorError where it ends, or makes no steps, before its pace is known.
    """
    job = launch.run(plan, False, "none")
    try:
        pace = _watch(job, max(1, plan.world_size), seconds, steps_before)
    finally:
        if job.ended is None:
            job.stop()
        job.started.wait(None)
    return job, pace


def pace_of(samples: Mapping[Who, Sequence[StepSample]], seconds: float, steps_before: int) -> WindowPace | None:
    """That of ranks by what they have told; None where one of them has not made steps for long enough."""
    pairs = [(_first(each, steps_before), each[-1]) for each in samples.values()]
    if any(last.seconds - first.seconds < seconds or last.steps < causes.LEAST_STEPS for first, last in pairs):
        return None
    waits = [
        (last.input - (first.input or 0.0)) / (last.seconds - first.seconds)
        for first, last in pairs
        if last.input is not None
    ]
    return WindowPace(
        min((last.steps - first.steps) / (last.seconds - first.seconds) for first, last in pairs),
        statistics.mean(waits) if waits else None,
    )


def _first(samples: Sequence[StepSample], steps_before: int) -> StepSample:
    """The one from which on it counts; the last where that has not come."""
    return next((each for each in samples if each.seconds >= WARM_UP and each.steps >= steps_before), samples[-1])


def _watch(job: Job, ranks: int, seconds: float, steps_before: int) -> WindowPace:
    began = time.monotonic()
    while True:
        is_over = job.started.wait(LOOK_SECONDS).is_final
        samples = step_records.read(job.started).of_ranks()
        if len(samples) >= ranks and (pace := pace_of(samples, seconds, steps_before)) is not None:
            return pace
        if is_over:
            job.wait()
            raise EstimatorError(
                f"{job.name} has ended before its ranks had made {causes.LEAST_STEPS} steps in {seconds:g} s: let the "
                "script train longer, by its arguments, or ask for shorter windows"
            )
        if not samples and time.monotonic() - began > PATIENCE:
            raise EstimatorError(f"in {PATIENCE:.0f} s {causes.why_thin(())}")
