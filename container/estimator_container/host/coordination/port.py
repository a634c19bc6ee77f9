"""What a host and its part in the job want of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ...contract.settings import Restarts
    from ...failures.hangs.standing import StandingRank
    from ...failures.horovod_stalls import Stall
    from ...failures.outcome import Outcome
    from ...failures.verdict import Verdict
    from ...ranks.server import RankEnd
    from ...training.page import StepCount
    from ..spec import HostSpec
    from ..toolkit import Toolkit
    from .platform_line import PlatformLine


class HostPort(Protocol):
    """What the first host's part, or another's, needs from the host itself."""

    spec: HostSpec
    toolkit: Toolkit
    outcome: Outcome | None
    """How the job ended, once that is known."""
    platform: PlatformLine | None
    """To the platform, where that has something to say or to hear."""
    restarts: Restarts
    """Those that came before this attempt."""
    stopping: bool
    """Whether its ranks have been told to end."""

    @property
    def has_scheduler(self) -> bool:
        """Whether it is on a machine of its own, where a scheduler may signal every process."""

    @property
    def endpoint(self) -> str:
        """Where a rank of this host may listen, as `address:port`; empty where the toolkit need not see to that."""

    def start_ranks(self, endpoints: Sequence[str]) -> None:
        """Start the ranks of this host; `endpoints` are those of all hosts, in their order."""

    def stalled(self, stall: Stall) -> None:
        """Horovod on a rank of some host says whom it waits for."""

    def bound_learnt(self, seconds: float) -> None:
        """By what the ranks of some host have written, none may be silent for longer."""

    def step_over(self) -> None:
        """Every rank of every host has ended its step."""

    def end_attempt(self, found: Verdict) -> None:
        """End the ranks, because of `found`; the host stands by, for another attempt may follow."""

    def begin_again(self, so_far: int | None) -> None:
        """Another attempt follows, after so many: run the same from the first step. See `Restarts.next`."""

    def stop(self) -> None:
        """Let the ranks end in their own way, within the grace period."""

    def end(self, outcome: Outcome) -> None:
        """Set the outcome; the first one counts."""


class Coordinator(Protocol):
    """A host's part in the job, and what that wants to hear of the host."""

    def open(self) -> None:
        """Begin to look for the other hosts, and to beat: nothing holds this host up for long from now on.

        Raises ConfigurationError or OSError.
        """

    def prepared(self) -> None:
        """This host has what its ranks need."""

    def ready(self) -> None:
        """This host can run the next step, which starts when all can."""

    def ranks_started(self, step: int) -> None:
        """All ranks of this host run the step of that number, from 0."""

    def spawned(self, rank: int) -> None:
        """A rank of this host runs that another one, of any host, has started."""

    def rank_ended(self, ended: RankEnd) -> None:
        """A rank of this host has."""

    def ranks_stand(self, standing: dict[int, StandingRank] | None, seconds: float) -> None:
        """All ranks of this host have stood still for so many seconds, or with None do so no longer."""

    def bound_learnt(self, seconds: float) -> None:
        """By what the ranks of this host have written, they may be silent for so long."""

    def weights_seen(self, look: list[str]) -> None:
        """A rank of this host has sent some of its weights: the fields of a `drift.weight_report.WeightReport`."""

    def steps_seen(self, counts: Sequence[StepCount]) -> None:
        """Ranks of this host have made these training steps so far."""

    def stalled(self, stall: Stall) -> None:
        """Horovod on a rank of this host says whom it waits for."""

    def timeline_asked(self) -> None:
        """A window of the timeline begins on this host."""

    def report(self, found: Verdict) -> None:
        """Something failed here: the first host decides what comes of it."""

    def let_go(self) -> None:
        """The ranks of this attempt are about to be ended: nothing that they do counts any more."""

    def cleared(self) -> None:
        """Nothing of the attempt is left on this host but its files."""

    def stop(self) -> None:
        """This host was told to stop: all stop."""

    def close(self) -> None:
        """The host ends."""
