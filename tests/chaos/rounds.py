"""One round of chaos: a small job, one fault at one moment, and what became of it."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from estimator_container.failures.verdict import Verdict

from estimator_sdk import Job, JobFailed
from estimator_sdk.backends.supervised.job import wait_until_gone
from tests.waiting import SECONDS

from .faults import FAULTS, GOES_ON, Fault, Shape, Target, Truth
from .jobs import estimator
from .leaks import Scan
from .running import NotThere, RunningJob

Grade = Literal["correct", "vague", "wrong", "hang"]

DEADLINE = {"process": 45.0, "docker": SECONDS, "slurm": 45.0, "ssh": 45.0}
"""Seconds from the fault to the end of the job, of which a busy machine's hosts may wait 20 for one that is silent, and
an engine may stand still for most: more is a hang."""
THERE_SECONDS = SECONDS  # until what is to be struck has started
LOOK_SECONDS = 0.01  # between looks for what is to be struck
UP_SECONDS = 0.05  # between looks at whether all ranks are up, each of which reads of every process
LEFT_SECONDS = SECONDS  # after the supervisor; only what no one waits for, such as a reaper, needs them
ORPHANED_SECONDS = SECONDS  # after a supervisor was killed, when nobody is left who could wait, or by Slurm's daemons
BY_ITSELF = {
    "raise": "exception",
    "exit": "exit_code",
    "exit-hard": "exit_code",
    "abort": "exit_code",
    "hoard": "out_of_memory",
}
"""How a rank fails by itself, and the kind of the verdict."""
LIMIT = 0.25  # GiB that a host has where the memory is used up
MOMENTS = {"process": 1.2, "docker": 2.5, "slurm": 2.5, "ssh": 3.0}
"""Seconds: about as long as a start takes, and as much again."""


@dataclass(frozen=True)
class Round:
    """What is done in a round; the same seed and number give the same."""

    number: int
    seed: int
    fault: str
    target: Target
    moment: float
    """Seconds after `fit()` has returned, or all ranks are up where the fault asks for that.

    A fault whose target is not there by then strikes as soon as it is.
    """

    @property
    def limited(self) -> bool:
        """Whether the hosts have a limit on memory."""
        return self.fault in ("hoard", "fill-memory")

    @property
    def kit(self) -> Fault | None:
        """The fault that comes from outside; None where the script fails by itself."""
        return FAULTS.get(self.fault)

    def __str__(self) -> str:
        shape = self.target.shape
        world = f"{shape.hosts} x {shape.processes}" if shape.processes else f"{shape.hosts} hosts, no world"
        aim = f"{self.target.host}" + ("" if self.target.rank is None else f" rank {self.target.rank}")
        what = f"{shape.backend} {world}, {self.fault} at {aim}, {self.moment:.2f} s"
        return f"round {self.number} of seed {self.seed}: {what}"


def fits(name: str, shape: Shape) -> bool:
    if name in FAULTS:
        return FAULTS[name].fits(shape, limited=True)
    return not (name == "abort" and shape.processes is None) and not (name == "hoard" and shape.backend != "docker")


def drawn(
    number: int, seed: int, backend: str, faults: frozenset[str], fits: Callable[[str, Shape], bool] = fits
) -> Round:
    """A round at random: first the fault, so that each has its share, then a shape that it can strike."""
    chance = random.Random(f"{seed} {backend} {number}")
    while True:
        name = chance.choice(sorted(faults))
        shape = Shape(backend, chance.choice([1, 2, 2, 3]), chance.choice([None, 1, 2, 2]))
        if fits(name, shape):
            target = Target(shape, chance.choice(shape.ranks))
            return Round(number, seed, name, target, chance.uniform(0.0, MOMENTS[backend]))


def possible(backend: str) -> frozenset[str]:
    """All faults that some job of a backend can meet."""
    shape = Shape(backend, 2, 2)
    return frozenset(name for name in (*FAULTS, *BY_ITSELF) if fits(name, shape))


@dataclass
class Outcome:
    """What became of a round."""

    round: Round
    grade: Grade
    said: str
    """What the caller got, in words."""
    seconds: float | None = None
    """From the fault to the typed error; None where there was none to come."""
    left: list[str] = field(default_factory=list)
    job: str = ""

    @property
    def is_good(self) -> bool:
        return self.grade == "correct" and not self.left

    def __str__(self) -> str:
        time_taken = "" if self.seconds is None else f" after {self.seconds:.2f} s"
        left = "".join(f"\n    left: {each}" for each in self.left)
        return f"{self.round}\n    {self.grade}{time_taken}: {self.said}{left}"


def play(plan: Round, image: str | None) -> Outcome:
    """Run the job, do the fault, wait for the end, and look at what is left."""
    backend = plan.target.shape.backend
    scan = Scan(with_engine=backend == "docker", on_pool=backend == "ssh")
    job = start(plan, image)
    try:
        outcome = _strike_and_wait(plan, job)
    finally:
        end(plan, job)
    outcome.job = job.name
    nobody_waits = plan.fault == "kill-supervisor" or backend == "slurm"
    patience = ORPHANED_SECONDS if nobody_waits else LEFT_SECONDS
    wait_until_gone()
    outcome.left = scan.left(job.name, patience)
    return outcome


def start(plan: Round, image: str | None) -> Job:
    shape = plan.target.shape
    fault = {"fault": plan.fault, "number": plan.target.number, "after": plan.moment} if plan.kit is None else {}
    # A job that is to go on goes on for a while after the fault, and then ends.
    seconds = 3.0 + plan.moment if plan.fault in ("hiccup-rank", "slow-host") else 3 * SECONDS
    limit = LIMIT if plan.limited else None
    return estimator(shape, image, {"seconds": seconds, **fault}, limit).fit(wait=False)


def _strike_and_wait(plan: Round, job: Job) -> Outcome:
    running = RunningJob(job)
    struck = time.time()
    if plan.kit is None:
        truth = _truth_of_script(plan)
    else:
        try:
            if plan.kit.once_up:
                wait_until_up(running, plan.target.shape)
            threading.Event().wait(plan.moment)
            truth, struck = strike_when_there(plan.kit, running, plan.target)
        except NotThere as error:
            return Outcome(plan, "hang", f"nothing to strike: {error}; {_state(job)}")
    try:
        deadline = DEADLINE[plan.target.shape.backend]
        patience = deadline + (plan.moment + deadline if plan.kit is None or truth == GOES_ON else 0.0)
        status = job.wait(patience)
    except JobFailed as failed:
        ended = time.time()
        grade = judge(truth, failed.verdict)
        said = f"{_short(failed.verdict)}{'' if grade == 'correct' else f', and the truth is {truth}'}"
        if plan.kit is None:
            struck = told_at(job) or struck
        # A rank that hoards memory begins long before the kernel ends it, and nobody says when that is.
        return Outcome(plan, grade, said, None if plan.fault == "hoard" else ended - struck)
    if status == "Completed" and truth == GOES_ON:
        return Outcome(plan, "correct", "Completed")
    if status not in ("Completed", "Stopped"):
        return Outcome(plan, "hang", f"{_state(job)} {deadline:g} s after the fault: {truth}")
    return Outcome(plan, "wrong", f"{_state(job)}, and the truth is {truth}")


def wait_until_up(running: RunningJob, shape: Shape) -> None:
    """Until every rank runs. Raises NotThere when that takes too long, or the job has ended before."""
    deadline = time.monotonic() + THERE_SECONDS
    while len(running.ranks()) < len(shape.ranks):
        if time.monotonic() > deadline or running.job.status not in ("InProgress", "Stopping"):
            raise NotThere(f"not all ranks of {running.job.name} are up")
        threading.Event().wait(UP_SECONDS)


def strike_when_there(fault: Fault, running: RunningJob, target: Target) -> tuple[Truth, float]:
    """Do a fault as soon as it can be done; returns the truth, and when that was: seconds since 1970.

    Raises NotThere when it could not be done for a long time, or the job has ended before.
    """
    deadline = time.monotonic() + THERE_SECONDS
    while True:
        struck = time.time()
        try:
            return fault.strike(running, target), struck
        except NotThere:
            if time.monotonic() > deadline or running.job.status not in ("InProgress", "Stopping"):
                raise
        threading.Event().wait(LOOK_SECONDS)


def judge(truth: Truth, verdict: Verdict) -> Grade:
    """`vague` names nothing that is wrong, but less than could be known."""
    if not truth.kinds:
        return "wrong"
    if verdict.host in truth.hosts and verdict.rank in truth.ranks and verdict.kind in truth.kinds:
        return "correct"
    names_nothing_wrong = verdict.host in truth.hosts | {None} and verdict.rank in truth.ranks | {None}
    return "vague" if names_nothing_wrong else "wrong"


def told_at(job: Job) -> float | None:
    """When the script said that it fails: seconds since 1970."""
    said = (line.data.split() for line in job.logs(stream="stdout") if line.data.startswith(b"failing at"))
    return next((float(words[2]) for words in said), None)


def _truth_of_script(plan: Round) -> Truth:
    target = plan.target
    return Truth((BY_ITSELF[plan.fault],), frozenset({target.host}), frozenset({target.rank}))


def end(plan: Round, job: Job) -> None:
    """A job that did not end by itself is ended, so that the next round finds a quiet machine."""
    if job.status not in ("InProgress", "Stopping"):
        return
    running = RunningJob(job)
    if plan.kit is not None and plan.kit.heal is not None:
        plan.kit.heal(running, plan.target)
    job.stop()
    with contextlib.suppress(JobFailed, NotThere):
        if job.wait(SECONDS) == "Stopping":
            FAULTS["kill-supervisor"].strike(running, plan.target)


def _state(job: Job) -> str:
    why = f" ({_short(job.verdict)})" if job.verdict is not None else ""
    return f"the job is {job.status}{why}"


def _short(verdict: Verdict) -> str:
    rank = "" if verdict.rank is None else f" rank {verdict.rank}"
    return f"{verdict.kind} {verdict.host}{rank} ({verdict.message[:200]})"
