"""Running a job for a while only, to learn how fast its steps are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ...errors import EstimatorError
from ...job.diagnosis import causes, step_records
from .. import launch

if TYPE_CHECKING:
    from ...job.diagnosis.step_records import StepSample
    from ...job.job import Job
    from ...plan.plan import Plan

LOOK_SECONDS = 0.5
PATIENCE = 600.0
"""Seconds until the first steps, after which a window is given up."""
WARM_UP = 1.0
"""Seconds of steps that are left out at the beginning."""


def run(plan: Plan, seconds: float) -> tuple[Job, float]:
    """Run a plan until all its ranks have made steps for so many seconds, then stop it; returns its steps a second.

    Raises JobFailed where it fails, and EstimatorError where it ends, or makes no steps, before its rate is known.
    """
    job = launch.run(plan, False, "none")
    try:
        rate = _watch(job, max(1, plan.world_size), seconds)
    finally:
        if job.ended is None:
            job.stop()
        job.started.wait(None)
    return job, rate


def _watch(job: Job, ranks: int, seconds: float) -> float:
    began = time.monotonic()
    while True:
        is_over = job.started.wait(LOOK_SECONDS).is_final
        samples = step_records.read(job.started).of_ranks()
        if len(samples) >= ranks and all(_is_enough(each, seconds) for each in samples.values()):
            return min(_rate(each) for each in samples.values())
        if is_over:
            job.wait()
            raise EstimatorError(
                f"{job.name} has ended before its ranks had made {causes.LEAST_STEPS} steps in {seconds:g} s: let the "
                "script train longer, by its arguments, or ask for shorter windows"
            )
        if not samples and time.monotonic() - began > PATIENCE:
            raise EstimatorError(f"in {PATIENCE:.0f} s {causes.why_thin(())}")


def _is_enough(samples: list[StepSample], seconds: float) -> bool:
    return samples[-1].seconds >= seconds + WARM_UP and samples[-1].steps >= causes.LEAST_STEPS


def _rate(samples: list[StepSample]) -> float:
    first = next((each for each in samples if each.seconds >= WARM_UP), samples[0])
    last = samples[-1]
    if last is first:
        return last.steps / last.seconds
    return (last.steps - first.steps) / (last.seconds - first.seconds)
