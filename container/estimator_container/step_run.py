"""What the first host knows of the step that runs; a job with an entry point is of one step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .frames import NO_RANK

if TYPE_CHECKING:
    from .events import ProgramOutput
    from .links import Link
    from .loop import Timer
    from .ranks import Ended

Place = tuple[str, int]
"""A host, and a rank on it; without a world that is NO_RANK."""


@dataclass
class StepRun:
    """One step, from the first host that is ready for it to the last rank that has ended it."""

    places: tuple[Place, ...]
    """Where the step runs."""
    ready: set[str] = field(default_factory=set)
    """The hosts that are prepared for it."""
    with_daemon: set[str] = field(default_factory=set)
    """The other hosts on which MPI has a daemon."""
    with_ranks: set[str] = field(default_factory=set)
    """The hosts all of whose ranks have started."""
    ended: dict[Place, Ended] = field(default_factory=dict)
    standing: dict[str, dict[int, str]] = field(default_factory=dict)
    """Host -> rank -> where it stands, of those hosts whose ranks all stand still."""
    waiting_agents: dict[str, Link] = field(default_factory=dict)
    mpirun: ProgramOutput | None = None
    mpirun_runs: bool = False
    without_reports: Timer | None = None
    """When it is no longer waited for what the ranks say of their end."""

    @property
    def all_ended(self) -> bool:
        return len(self.ended) == len(self.places)

    @property
    def all_ended_well(self) -> bool:
        """By themselves, with the code 0."""
        return self.all_ended and not any(each.code or each.told for each in self.ended.values())

    def late(self) -> list[tuple[str, int | None]]:
        """Who has not ended yet."""
        left = (place for place in self.places if place not in self.ended)
        return [(host, None if rank == NO_RANK else rank) for host, rank in left]
