"""Hurt real jobs that may begin again, at random moments, and look whether they end as if nothing had been.

    python -m tests.chaos.recoveries --count 200 --backend process|docker [--seed S] [--first N] [--fault NAME]

Each round starts a small training job of a random shape that keeps checkpoints and tries everything again, and does one
random fault to it. The job must complete with the very weights of an undisturbed one, in one attempt more and no other,
with a verdict on the first one that is not wrong, and nothing of it may be left on the machine. A round is done again
by its seed and number: `--seed S --first N --count 1`. Ends with 1 when anything is not so.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from estimator_sdk import Estimator, Job, JobFailed
from estimator_sdk.backends.supervised.job import wait_until_gone
from estimator_sdk.spec.restart_policy import restartable
from estimator_sdk.values.home import home
from tests.waiting import SECONDS

from . import rounds, trainer
from .faults import FAULTS, Shape, Truth
from .leaks import Scan
from .playing import play_as_told
from .rounds import LEFT_SECONDS, LIMIT, Round, judge, strike_when_there, wait_until_up
from .running import NotThere, RunningJob

SCRIPT = Path(trainer.__file__)
BY_ITSELF = {
    "raise": "exception",
    "exit": "exit_code",
    "abort": "exit_code",
    "hang": "deadlock",
    "hoard": "out_of_memory",
}
"""How a rank fails by itself, and the kind of the verdict."""
FINAL = frozenset({"kill-supervisor"})
"""After these nobody is left who could begin again."""
ENDLESS = frozenset({"slow-host"})
"""These hold a job up for longer than a round may take."""
STEPS = {"process": 150, "docker": 300}
"""For longer than any fault waits: a job that is over cannot be hurt."""
HANG_SECONDS = 5.0
DEADLINE = 2 * SECONDS  # for a whole job


@dataclass
class Outcome:
    """What became of a round."""

    round: Round
    problems: list[str]
    seconds: float
    job: str

    def __str__(self) -> str:
        what = "recovered" if not self.problems else "; ".join(self.problems)
        return f"{self.round}\n    {what}, {self.seconds:.1f} s, job {self.job}"


@dataclass
class Tally:
    """What became of all rounds."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        return [f"{each.round}: {problem}" for each in self.outcomes for problem in each.problems]

    def __str__(self) -> str:
        good = Counter(each.round.fault for each in self.outcomes if not each.problems)
        total = Counter(each.round.fault for each in self.outcomes)
        lines = [f"{total.total()} faults, {good.total()} recoveries"]
        return "\n".join([*lines, *(f"  {fault:16} {good[fault]:3} of {total[fault]:3}" for fault in sorted(total))])


def possible(backend: str) -> frozenset[str]:
    """All faults that some job of a backend can meet, and outlive."""
    return frozenset(name for name in (*FAULTS, *BY_ITSELF) if fits(name, Shape(backend, 2, 2))) - FINAL - ENDLESS


def fits(name: str, shape: Shape) -> bool:
    """Whether a fault can strike such a job; only a world can wait for a rank that hangs."""
    in_world = shape.processes is not None and len(shape.ranks) > 1
    return rounds.fits(name, shape) and (name != "hang" or in_world)


def play(plan: Round, image: str | None) -> Outcome:
    """Run the job, do the fault, wait for the end, and hold it against what is right."""
    scan = Scan(with_engine=plan.target.shape.backend == "docker")
    began = time.monotonic()
    job = start(plan, image)
    try:
        problems = list(_strike_and_wait(plan, job))
    finally:
        rounds.end(plan, job)
    wait_until_gone()
    problems += [f"left: {each}" for each in scan.left(job.name, LEFT_SECONDS)]
    return Outcome(plan, problems, time.monotonic() - began, job.name)


def start(plan: Round, image: str | None) -> Job:
    shape, steps = plan.target.shape, STEPS[plan.target.shape.backend]
    step = int(steps * plan.moment / rounds.MOMENTS[shape.backend])
    fault = {"fault": plan.fault, "number": plan.target.number, "at": step} if plan.kit is None else {}
    mpi = {"mpi": {"enabled": True, "processes_per_host": shape.processes}}
    return Estimator(
        entry_point=SCRIPT,
        backend=shape.backend,
        image_uri=image,
        instance_count=shape.hosts,
        distribution=mpi if shape.processes else None,
        memory=LIMIT if plan.limited else None,
        hyperparameters={"steps": steps, **fault},
        checkpoint_s3_uri=f"file://{home()}/store/{plan.seed}-{plan.number}",
        restart_policy={"on": restartable(), "max": 3},
        hang_timeout=HANG_SECONDS if plan.fault == "hang" else 1800.0,
        base_job_name="chaos",
        stop_timeout=2,
    ).fit(wait=False)


def _strike_and_wait(plan: Round, job: Job) -> Iterator[str]:
    """What is not as it should be."""
    try:
        truth = _strike(plan, RunningJob(job))
    except NotThere as error:
        yield f"nothing to strike: {error}; the job is {job.status}"
        return
    try:
        status = job.wait(DEADLINE)
    except JobFailed as failed:
        yield f"it failed in attempt {len(job.attempts)}: {failed.verdict.message}"
        return
    if status != "Completed":
        yield f"it is {status} after {DEADLINE:g} s, in attempt {len(job.attempts)}"
        return
    found = [attempt.verdict for attempt in job.attempts if attempt.verdict is not None]
    if len(job.attempts) != 1 + bool(truth.kinds):
        yield f"{len(job.attempts)} attempts, of which failed: {'; '.join(verdict.message for verdict in found)}"
    elif found and judge(truth, found[0]) == "wrong":
        yield f"the verdict was {found[0].message}, and the truth is {truth}"
    ranks = len(plan.target.shape.ranks) if plan.target.shape.processes else 1
    weights = json.loads((job.download(job.folder / "model-files") / trainer.MODEL).read_text())
    if weights != trainer.undisturbed(STEPS[job.backend], ranks):
        yield f"other weights than those of an undisturbed job: {weights}"


def _strike(plan: Round, running: RunningJob) -> Truth:
    """Do what comes from outside. Returns what is so once the fault has struck. Raises NotThere."""
    if plan.kit is None:
        return Truth((BY_ITSELF[plan.fault],), frozenset({plan.target.host, None}), frozenset({plan.target.rank, None}))
    if plan.kit.once_up:
        wait_until_up(running, plan.target.shape)
    threading.Event().wait(plan.moment)
    truth, _ = strike_when_there(plan.kit, running, plan.target)
    return truth


def recover(
    backend: str,
    numbers: Sequence[int],
    seed: int,
    image: str | None,
    faults: frozenset[str] | None = None,
    verbose: bool = False,
) -> Tally:
    """Play the rounds of these numbers; without `faults` all that the backend can meet.

    Prints the rounds that are not good, or with `verbose` every one.
    """
    chosen = possible(backend) if faults is None else faults & possible(backend)
    tally = Tally()
    for number in numbers:
        outcome = play(rounds.drawn(number, seed, backend, chosen, fits), image)
        tally.outcomes.append(outcome)
        if verbose or outcome.problems:
            print(outcome, flush=True)
    return tally


def main() -> int:
    tally = play_as_told("recoveries", __doc__ or "", 200, possible, "outlive", recover)
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main())
