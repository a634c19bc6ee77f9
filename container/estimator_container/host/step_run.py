"""What the first host knows of the step that runs; a job with an entry point is of one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..failures.verdict import last_words
from ..logs.frames import NO_RANK, SPAWNED

if TYPE_CHECKING:
    from ..failures.drift import Finding, Judge
    from ..failures.horovod_stalls import Lasting, Stall
    from ..logs.events import ProgramOutput
    from ..ranks.server import Ended
    from ..runtime.loop import Timer
    from ..worlds.mpi.launch_agents import LaunchAgents

Place = tuple[str, int]
"""A host, and a rank on it; without a world that is NO_RANK."""


class StepRun:
    """One step, from the first host that is ready for it to the last rank that has ended it."""

    def __init__(self, places: tuple[Place, ...]) -> None:
        """`places` is where the step runs."""
        self.places = places
        self.ready: set[str] = set()
        """The hosts that are prepared for it."""
        self.with_daemon: set[str] = set()
        """The other hosts on which MPI has a daemon."""
        self.with_ranks: set[str] = set()
        """The hosts all of whose ranks have started."""
        self.ended: dict[Place, Ended] = {}
        """Those of `places` that have."""
        self.spawned: set[Place] = set()
        """The ranks that run because others have started them."""
        self.spawned_ended: dict[Place, Ended] = {}
        self.standing: dict[str, dict[int, str]] = {}
        """Host -> rank -> where it stands, of those hosts whose ranks all stand still."""
        self.daemon_requests: dict[str, tuple[str, str]] = {}
        """What mpirun asks of hosts that are not ready yet: by what name to go, and the command of its daemon."""
        self.agents: LaunchAgents | None = None
        self.command: list[str] = []
        """mpirun's, without the program that it starts."""
        self.mpirun: ProgramOutput | None = None
        self.mpirun_runs = False
        self.without_reports: Timer | None = None
        """When it is no longer waited for what the ranks say of their end."""
        self._judge: Judge | None = None
        self.stalls: Lasting | None = None
        """Whom Horovod waits for, where it has ever said so."""

    def close(self) -> None:
        """Wait for nobody any more."""
        if self.without_reports is not None:
            self.without_reports.cancel()
        if self.agents is not None:
            self.agents.close()
            self.agents = None

    def rank_ended(self, host: str, ended: Ended) -> None:
        """A rank of any kind has."""
        self.spawned.discard((host, ended.rank))
        (self.ended if ended.rank < SPAWNED else self.spawned_ended)[host, ended.rank] = ended

    @property
    def hosts(self) -> dict[int, str]:
        """Where each rank is, those included that were spawned and have not ended."""
        return {rank: name for name, rank in (*self.places, *self.spawned)}

    @property
    def stall(self) -> Stall | None:
        """Whom Horovod waits for at present."""
        return self.stalls.stall if self.stalls is not None else None

    @property
    def all_ended(self) -> bool:
        """Also those that were spawned."""
        return len(self.ended) == len(self.places) and not self.spawned

    @property
    def all_ended_well(self) -> bool:
        """By themselves, with the code 0."""
        return self.all_ended and not any(each.code or each.told for each in self.ended.values())

    def judge_weights(self, look: list[str]) -> Finding | None:
        """What the fields of a `drift.look.Look` make known of ranks that differ; those of none are left alone."""
        from ..drift.look import Look
        from ..failures.drift import Judge  # hardly any job trains in the first second

        if self._judge is None:
            self._judge = Judge(len(self.places))
        try:
            return self._judge.hear(Look.from_fields(look))
        except ValueError:
            return None  # a script can write to that socket, too

    def place_of(self, rank: int, code: int) -> Place:
        """Where the rank runs of which mpirun says that it ended with `code`: it does not say of which world it is."""
        ended = {**self.ended, **self.spawned_ended}
        named = [place for place in (*self.places, *ended) if place[1] % SPAWNED == rank]
        return next((place for place in named if place in ended and ended[place].code == code), named[0])

    def last_words_of(self, rank: int) -> str:
        """What a rank said on stderr before it ended."""
        ended = {**self.ended, **self.spawned_ended}
        tails = [each.stderr_tail for (_, number), each in ended.items() if number == rank]
        return last_words(tails[0]) if tails else ""

    def late(self) -> list[tuple[str, int | None]]:
        """Who has not ended yet."""
        left = (place for place in self.places if place not in self.ended)
        return [(host, None if rank == NO_RANK else rank) for host, rank in left]
