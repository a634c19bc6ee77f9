"""What a job tells of itself: each kind of event with its facts; `docs/logs.md` lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Union

from .event import Event

# A host, from its configuration to its end.


class PhaseStarted(Event):
    """A host begins a phase: `code`, `requirements`, `channels`, `world` or `run`."""

    phase: str


class PhaseEnded(Event):
    """It is through with it."""

    phase: str
    seconds: float


class HostJoined(Event):
    """Another host has proved itself to the first one."""

    recorded_for = "whoever looks for a host that is missing: the hosts that came are here"

    host: str


class WorldStarting(Event):
    """All hosts are ready: the first one starts the world."""

    recorded_for = "the benchmarks, and whoever wants mpirun's command line"

    hosts: Sequence[str]
    size: int
    command: Sequence[str] | None = None
    """mpirun and its options, in a world of MPI."""
    endpoints: Sequence[str] | None = None
    """Where each host may listen, in any other."""


class Stopping(Event):
    """A host was told to stop, and has told its ranks."""


class Ended(Event):
    """The last that a host says."""

    outcome: str
    """`completed`, `failed` or `stopped`."""
    reason: str = ""
    """The message of the verdict, where there is one."""


HostEvent = Union[PhaseStarted, PhaseEnded, HostJoined, WorldStarting, Stopping, Ended]


# Its ranks; without a world the script of a host is None.


class RankStarted(Event):
    """The script of a rank runs."""

    recorded_for = "the benchmarks, and whoever looks for a rank that is missing"

    rank: int | None


class RankEnded(Event):
    """It has ended: `code` is its exit code, or minus the number of a signal."""

    recorded_for = "the benchmarks; whether it is a failure, and whose, the verdict says"

    rank: int | None
    code: int


class RankFrozen(Event):
    """Somebody has stopped it, as with SIGSTOP; the job fails unless it is continued."""

    rank: int | None


class RankThawed(Event):
    """It was continued."""

    rank: int | None


class RanksStand(Event):
    """All ranks of all hosts stand still; in the log of the first one. The job fails when that lasts."""

    seconds: float | None = None
    """In which none of them has written anything or moved from its line."""
    sentence: str | None = None
    """Who does, by which rule it is told or ends the job, and who is to blame."""
    report: Mapping[str, object] | None = None
    """All that is known of them: see `failures.hangs.report.HangFinding.facts`."""


class RanksMove(Event):
    """One of them has moved after all."""


class HorovodStalled(Event):
    """Horovod on a rank says that it waits for others; once for each that it waits for."""

    rank: int | None
    seconds: int
    missing: Mapping[int, Sequence[str]]
    """Rank -> tensors that it has not submitted."""


class TrainingSteps(Event):
    """What ranks of a host have counted: with the first step of each, every few seconds, and with the end of each.

    The n-th of each fact is of the n-th rank.
    """

    recorded_for = "the ledger of the job's time, and whoever looks for the last step of a rank"

    ranks: Sequence[int | None]
    steps: Sequence[int]
    """How many have ended in its process."""
    numbers: Sequence[int]
    """That of the last one, which the script may count from an earlier run on."""
    first: Sequence[float]
    """When the first one ended, in seconds since 1970."""
    last: Sequence[float]


class StepTimes(Event):
    """Where the time of those steps went: every second at first, then every few seconds, and with the end of each rank.

    All is counted from the end of the first step of a rank's process, in seconds; null is what is not known.
    """

    recorded_for = "the doctor"

    ranks: Sequence[int | None]
    pids: Sequence[int]
    steps: Sequence[int]
    """Those that have ended since."""
    seconds: Sequence[float]
    """That they took: what follows is a part of it, and the rest is computing."""
    input: Sequence[float | None]
    """Waiting for input."""
    communication: Sequence[float | None]
    """Waiting for gradients, and so for other ranks."""
    checkpoint: Sequence[float | None]
    idle: Sequence[float | None]
    """None of these, and using no CPU either."""


RankEvent = Union[
    RankStarted, RankEnded, RankFrozen, RankThawed, RanksStand, RanksMove, HorovodStalled, TrainingSteps, StepTimes
]


# What the first host says of all ranks, in its log's own words too.


class StepStarted(Event):
    """In a job with steps: one begins on all hosts."""

    is_said = True

    step: str
    number: int
    """From 1."""
    of: int
    line: str

    @property
    def sentence(self) -> str:
        """What the log says of it."""
        return f"step {self.step!r}, {self.number} of {self.of}: {self.line}"


class RanksLate(Event):
    """The first rank has ended a step so many seconds ago, and others still run."""

    is_said = True

    step: str
    seconds: float
    ranks: Sequence[int | None]
    hosts: Sequence[str]
    """Where those are, each once."""


class RankSlow(Event):
    """A rank takes persistently longer for its own part of a step than the others; once for each rank."""

    is_said = True

    host: str
    rank: int
    factor: float
    """How many times as long a step takes for all because of it."""
    own: float
    """Seconds that it takes for its own part of a step."""
    median: float
    """The same of the median rank."""


class RanksDiffer(Event):
    """The weights of ranks differ: see `failures.drift`."""

    is_said = True

    variable: str
    step: int
    since: int
    """The step at which they were first seen to."""
    groups: Sequence[Sequence[int]]
    """The ranks that agree with each other."""
    standing: str
    """One of `drift.weight_report.Standing`."""
    ends_the_job: bool


SaidEvent = Union[StepStarted, RanksLate, RankSlow, RanksDiffer]


# The job as a whole.


class FailureFound(Event):
    """The first host knows why the attempt fails, and begins to end it on all hosts."""

    recorded_for = "the ledger of the job's time: how long it took to notice a failure"

    reason: str


class AttemptFailed(Event):
    """An attempt has failed, and another one follows; in the log of the first host."""

    attempt: int
    reason: str


class HostSuspected(Event):
    """A host has failed so often within so many seconds that its machine may be to blame; in the log of the first."""

    host: str
    failures: int
    seconds: float


class ServiceStatus(Event):
    """SageMaker has taken a job from one secondary status to the next, or a scheduler has one in its queue.

    They tell nobody by themselves: the client does.
    """

    status: str
    message: str


JobEvent = Union[FailureFound, AttemptFailed, HostSuspected, ServiceStatus]
