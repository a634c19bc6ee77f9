"""Makes the ledger of a job: a pure function of its timeline.

Each rank's time, from the job's creation to its end, is cut into phases without a gap. The seconds of a phase are
the mean over the ranks, so that all phases together are the job's wall time.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from estimator_container.failures.kind import Kind

from ..errors import EstimatorError
from . import timeline as timelines
from .ledger import PHASES, AttemptCost, Ledger, Phase, Source
from .timeline import Span

if TYPE_CHECKING:
    from estimator_container.failures.verdict import Verdict

    from ..backends.port import StartedJob
    from .timeline import AttemptTimeline, RankTimeline, SnapshotTime, Timeline, Who

_MOST_READ = 1 << 26  # bytes of a log that are read again for one line about the job
_SILENCE = 5.0  # seconds after which the silence of a host is found at the latest: law E2b


def of_job(job: StartedJob) -> Ledger:
    """That of a job now: its log is read. Raises EstimatorError for one that runs elsewhere."""
    return make(timelines.read(job, time.time()))


def goodput(job: StartedJob) -> str:
    """A sentence on where the time went; empty for a job that runs elsewhere, or whose log is long to read again."""
    with contextlib.suppress(EstimatorError, OSError):
        files = [path for path in job.log_files() if path.is_file()]
        if files and sum(path.stat().st_size for path in files) <= _MOST_READ:
            return of_job(job).sentence()
    return ""


def make(timeline: Timeline) -> Ledger:
    """The ledger of a job."""
    source = _source(timeline)
    cuts = _cuts(timeline.attempts)
    walks = [_walk(timeline, who, source, cuts) for who in timeline.ranks]
    count = max(1, len(walks))
    seconds: dict[Phase, float] = {phase: sum(walk.seconds[phase] for walk in walks) / count for phase in PHASES}
    costs = tuple(
        AttemptCost(
            attempt.record.number,
            _next_began(timeline, number) - attempt.record.began,
            sum(walk.steps[number] for walk in walks) / count,
            attempt.record.verdict.message if attempt.record.verdict else "",
        )
        for number, attempt in enumerate(timeline.attempts)
    )
    return Ledger(max(0.0, timeline.ended - timeline.created), len(walks), source, seconds, costs)


def _source(timeline: Timeline) -> Source:
    ranks = [rank for attempt in timeline.attempts for rank in attempt.ranks.values()]
    if any(rank.steps for rank in ranks):
        return "steps"
    return "metrics" if any(rank.metrics for rank in ranks) else "output"


def _next_began(timeline: Timeline, number: int) -> float:
    following = timeline.attempts[number + 1 : number + 2]
    return following[0].record.began if following else timeline.ended


# What survives.


def _cuts(attempts: Sequence[AttemptTimeline]) -> list[float]:
    """Of each attempt, until when its steps survive: in what an attempt begins from, and in the last one's result."""
    cuts: list[float] = []
    needed: str | None = None
    for attempt in reversed(attempts):
        failed = attempt.record.verdict is not None
        if not cuts and not failed:
            cut = math.inf
        else:
            held = _held(attempt.snapshots, needed, is_newest=not cuts or needed is None)
            cut = held.holds if held is not None else -math.inf
        if cut > -math.inf or needed is None:
            needed = attempt.base
        cuts.insert(0, cut)
    return cuts


def _held(snapshots: Sequence[SnapshotTime], name: str | None, is_newest: bool) -> SnapshotTime | None:
    """The snapshot of that name, or the newest one."""
    if is_newest:
        return snapshots[-1] if snapshots else None
    return next((snapshot for snapshot in snapshots if snapshot.name == name), None)


# The way of one rank.


class RankLedger:
    """The time of one rank, cut into phases from its beginning on."""

    def __init__(self, timeline: Timeline) -> None:
        self.seconds: dict[Phase, float] = dict.fromkeys(PHASES, 0.0)
        self.steps = [0.0] * len(timeline.attempts)
        """By attempt, the seconds of steps that survive."""
        self._at = timeline.created
        self._end = timeline.ended

    def until(self, time: float | None, phase: Phase) -> None:
        """All up to that time is of the phase; None is a time that is not known."""
        if time is not None:
            time = min(max(time, self._at), self._end)
            self.seconds[phase] += time - self._at
            self._at = time

    def steps_until(self, time: float, cut: float, attempt: int) -> None:
        """What was done until the cut survives."""
        before = self.seconds["steps"]
        self.until(min(time, cut), "steps")
        self.steps[attempt] += self.seconds["steps"] - before
        self.until(time, "lost_steps")


def _walk(timeline: Timeline, who: Who, source: Source, cuts: Sequence[float]) -> RankLedger:
    walk = RankLedger(timeline)
    for number, attempt in enumerate(timeline.attempts):
        starting: Phase = "launch" if number == 0 else "restart"
        walk.until(attempt.record.began, starting)
        _start(walk, attempt, who, starting)
        AttemptOfRank(walk, attempt, who, source, cuts[number], number, starting).walk()
    is_over = timeline.is_final and bool(timeline.attempts) and timeline.attempts[-1].record.ended is not None
    walk.until(timeline.ended, "outputs" if is_over else "unattributed")
    return walk


def _start(walk: RankLedger, attempt: AttemptTimeline, who: Who, starting: Phase) -> None:
    """From the beginning of an attempt until the script of the rank runs."""
    walk.until(attempt.restored, "restore")
    walk.until(attempt.channels, "channels")
    host, rank = attempt.hosts.get(who[0]), attempt.ranks.get(who)
    if host is not None and host.requirements is not None:
        walk.until(host.requirements.first, starting)
        walk.until(host.requirements.last, "requirements")
    if rank is not None:
        walk.until(rank.started, starting)


class AttemptOfRank:
    """What a rank did from the start of its script to the end of the attempt."""

    def __init__(
        self,
        walk: RankLedger,
        attempt: AttemptTimeline,
        who: Who,
        source: Source,
        cut: float,
        number: int,
        starting: Phase,
    ) -> None:
        self._walk = walk
        self._attempt = attempt
        self._rank = attempt.ranks.get(who)
        self._spans = _spans_of(attempt, self._rank, source)
        self._cut = cut
        self._number = number
        self._is_by_output = source == "output"
        self._before: Phase = starting if self._rank is None or self._rank.started is None else "first_step"
        """What the rank is at before its first step."""

    def walk(self) -> None:
        """All of it."""
        attempt, walk = self._attempt, self._walk
        verdict, stopping = attempt.record.verdict, _stopping(attempt)
        if verdict is not None:
            found = _found(attempt)
            self._train_until(_fault(attempt, verdict, found))
            walk.until(found, "notice")
        elif stopping is not None:
            self._train_until(stopping)
        else:
            self._train_to_the_end()
        if attempt.record.ended is not None:
            walk.until(_last_end(attempt), "end")
            walk.until(attempt.snapshots[-1].published if attempt.snapshots else None, "checkpoint_stall")
            walk.until(attempt.record.ended, "end")

    def _train_to_the_end(self) -> None:
        ends = [rank.ended for rank in self._attempt.ranks.values() if rank.ended is not None]
        self._take_steps(math.inf)
        if self._rank is not None:
            self._walk.until(self._rank.ended, self._after("after_steps"))
            if self._rank.ended is not None:
                self._walk.until(max(ends), "ranks_missing")

    def _train_until(self, time: float) -> None:
        """Until it was interrupted: a step that had not ended is lost."""
        self._take_steps(time)
        rank = self._rank
        if rank is not None and rank.code == 0 and rank.ended is not None and rank.ended < time:
            self._walk.until(rank.ended, self._after("after_steps"))
            self._walk.until(time, "ranks_missing")
        self._walk.until(time, self._after("lost_steps"))

    def _after(self, phase: Phase) -> Phase:
        """What the rank is at after its last step, if it has made any; what is silent may be anything."""
        return self._before if not self._spans else "unattributed" if self._is_by_output else phase

    def _take_steps(self, limit: float) -> None:
        if self._rank is not None and self._rank.ended is not None:
            limit = min(limit, self._rank.ended)  # the lines of others tell of this one as long as it runs
        for span in self._spans:
            self._walk.until(min(span.first, limit), "first_step")
            self._walk.steps_until(min(span.last, limit), self._cut, self._number)


def _spans_of(attempt: AttemptTimeline, rank: RankTimeline | None, source: Source) -> list[Span]:
    """When a rank made steps; of one that says nothing of them, when others did.

    What a rank writes tells little of its own steps: often the first one alone tells of those of all.
    """
    if rank is None:
        return []
    own = _own_spans(rank, source) if source != "output" else []
    if own or rank.started is None:
        return own
    return _merged(span for other in attempt.ranks.values() for span in _own_spans(other, source))


def _own_spans(rank: RankTimeline, source: Source) -> list[Span]:
    if source == "steps":
        return sorted(rank.steps.values(), key=lambda span: span.first)
    span = rank.metrics if source == "metrics" else rank.output
    return [span] if span is not None else []


def _merged(spans: Iterator[Span]) -> list[Span]:
    found = list(spans)
    return [Span(min(span.first for span in found), max(span.last for span in found))] if found else []


# The end of an attempt.


def _stopping(attempt: AttemptTimeline) -> float | None:
    """When its hosts were told to stop, if they were."""
    return min((host.stopping for host in attempt.hosts.values() if host.stopping is not None), default=None)


def _found(attempt: AttemptTimeline) -> float:
    """When it was known that the attempt has failed."""
    if attempt.failure_found is not None:
        return attempt.failure_found
    ends = [host.ended for host in attempt.hosts.values() if host.ended is not None]
    return min([*ends, *([attempt.record.ended] if attempt.record.ended is not None else [])], default=math.inf)


def _fault(attempt: AttemptTimeline, verdict: Verdict, found: float) -> float:
    """When it failed: with the end of the rank that is to blame, else with the last that is known to have moved."""
    ends = [
        rank.ended
        for (host, number), rank in attempt.ranks.items()
        if rank.ended is not None
        and rank.code != 0
        and verdict.rank in (None, number)
        and verdict.host in (None, host)
        and rank.ended <= found
    ]
    if ends:
        return min(ends)
    signs = [sign for rank in attempt.ranks.values() for sign in _signs(rank) if sign <= found]
    if verdict.kind in (Kind.HOST_LOST, Kind.FROZEN):
        return max([*signs, found - _SILENCE])
    return max(signs, default=found) if verdict.kind in (Kind.DEADLOCK, Kind.EARLY_EXIT) else found


def _signs(rank: RankTimeline) -> Iterator[float]:
    yield from (span.last for span in rank.steps.values())
    if rank.output is not None:
        yield rank.output.last


def _last_end(attempt: AttemptTimeline) -> float | None:
    return max((host.ended for host in attempt.hosts.values() if host.ended is not None), default=None)
