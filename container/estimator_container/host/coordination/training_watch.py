"""What the first host makes of how ranks get on in a step: whether they differ, are slow or late, or stand still."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...failures.late_ranks import LateWatch
from ...failures.verdict import Verdict
from ...logs.frames import SPAWNED

if TYPE_CHECKING:
    from ...failures.hangs.standing import StandingRank
    from ...training.page import StepCount
    from ..spec import HostSpec
    from ..toolkit import Toolkit
    from .standstill import Standstill
    from .step_run import StepRun


class TrainingWatch:
    """Watches the ranks of one step; says what is worth knowing, and reports what ends the attempt."""

    def __init__(self, spec: HostSpec, toolkit: Toolkit, run: StepRun, report: Callable[[Verdict], object]) -> None:
        self._spec = spec
        self._loop = toolkit.loop
        self._events = toolkit.events
        self._run = run
        self._report = report
        self._late_ranks = LateWatch(self._loop, self._events)
        self._standstill: Standstill | None = None
        """None as long as no host has ranks that all stand still."""

    def weights_seen(self, look: list[str]) -> None:
        """A rank tells what its weights are."""
        if self._spec.world is None:
            return
        found = self._run.judge_weights(look)
        if found is not None:
            self._events.tell(found.event, found.text)
            if found.ends_the_job:
                self._report(found.verdict(self._spec.world))

    def steps_seen(self, counts: Sequence[StepCount]) -> None:
        """A host tells how many steps its ranks have made."""
        if self._spec.world is None:
            return
        for slow in self._run.judge_steps(counts):
            from ...failures import stragglers  # which hardly any job has

            self._events.tell(slow, stragglers.sentence(slow))

    def host_stands(self, host: str, standing: dict[int, StandingRank] | None, seconds: float) -> None:
        """All ranks of a host have stood still for so many seconds, or with None do so no longer."""
        from .standstill import Standstill  # it seldom comes to this

        self._standstill = self._standstill or Standstill(
            self._loop, self._events, self._run, self._spec.settings, self._report
        )
        self._standstill.hear(host, standing, seconds)

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
        self._late_ranks.end()
        if self._standstill is not None:
            self._standstill.close()
            self._standstill = None
