"""What the first host makes of how ranks get on in a step: whether they differ, are slow or late, or stand still."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...failures.late_ranks import LateWatch
from ...failures.verdict import Verdict
from ...logs.frames import SPAWNED

if TYPE_CHECKING:
    from ...failures.hangs.standing import StandingRank
    from ...failures.horovod_stalls import Stall
    from ...training.page import StepCount
    from .others import Others
    from .port import HostPort
    from .standstill import Standstill
    from .step_run import StepRun


class TrainingWatch:
    """Watches the ranks of one step; says what is worth knowing, and reports what ends the attempt."""

    def __init__(self, host: HostPort, others: Others, run: StepRun, report: Callable[[Verdict], object]) -> None:
        self._host = host
        self._others = others
        self._spec = host.spec
        self._loop = host.toolkit.loop
        self._events = host.toolkit.events
        self._run = run
        self._is_closed = False
        self._report = report
        self._late_ranks = LateWatch(self._loop, self._events)
        self._standstill: Standstill | None = None
        """None as long as no host has ranks that all stand still."""

    @property
    def _is_over(self) -> bool:
        """Whether what ranks do changes nothing any more."""
        return self._is_closed or self._host.outcome is not None or self._host.stopping

    def weights_seen(self, look: list[str]) -> None:
        """A rank tells what its weights are."""
        if self._spec.world is None or self._is_over:
            return
        found = self._run.judge_weights(look)
        if found is not None:
            self._events.tell(found.event, found.text)
            if found.ends_the_job:
                self._report(found.verdict(self._spec.world))

    def steps_seen(self, counts: Sequence[StepCount]) -> None:
        """A host tells how many steps its ranks have made."""
        if self._spec.world is None or self._is_over:
            return
        for slow in self._run.judge_steps(counts):
            from ...failures import stragglers  # which hardly any job has

            self._events.tell(slow, stragglers.sentence(slow))

    def host_stands(self, host: str, standing: dict[int, StandingRank] | None, seconds: float) -> None:
        """All ranks of a host have stood still for so many seconds, or with None do so no longer."""
        if self._is_over:
            return
        from .standstill import Standstill  # it seldom comes to this

        self._standstill = self._standstill or Standstill(
            self._loop, self._events, self._run, self._spec.settings, self._report
        )
        self._standstill.hear(host, standing, seconds)

    def bound_learnt(self, host: str, seconds: float) -> None:
        """The ranks of a host may be silent for so long; the shortest time of all holds everywhere."""
        before = min(self._run.bounds.values(), default=None)
        self._run.bounds[host] = seconds
        bound = min(self._run.bounds.values())
        if bound != before:
            self._others.tell("bound", str(bound))
            self._host.bound_learnt(bound)

    def stalled(self, stall: Stall) -> None:
        """Horovod on a rank of some host says whom it waits for."""
        self._run.stalled(stall)
        self._others.tell("stalled", stall.to_json())
        self._host.stalled(stall)

    def rank_ended(self, rank: int) -> None:
        """One has ended well, and others still run."""
        if self._run.step is not None and rank < SPAWNED:
            self._late_ranks.begin(self._run.step.name, self._run.late)
        if self._standstill is not None:
            self._standstill.rank_ended()

    def all_ended(self) -> None:
        """Nobody is late any more."""
        self._late_ranks.end()

    def close(self) -> None:
        """Watch no longer."""
        self._is_closed = True
        self._late_ranks.end()
        if self._standstill is not None:
            self._standstill.close()
            self._standstill = None
