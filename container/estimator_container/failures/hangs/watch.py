"""Whether the ranks of this host still get anywhere: what they write, where they stand, what their children do.

CPU alone tells nothing (see `work.py`). Where each thread of the script stands does: a rank writes that down when it is
asked (see `own_stacks`), and that is only when half the time has passed in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...runtime.children import descendants
from ...runtime.loop import Loop
from . import evidence, waiting
from .awake_time import AwakeTime
from .dumps import DUMP_SECONDS
from .evidence import Use
from .patience import HangPatience
from .standing import NO_SCRIPT, StandingRank
from .waiting import Stacks
from .work import BUSY_SHARE, Work
from .written import LastStep, Written

if TYPE_CHECKING:
    from ...contract.names import Layout
    from ...ranks.server import RankServer
    from ..horovod_stalls import Lasting, Stall
    from .dumps import Dumps

LOOKS = 6  # in the shortest time after which ranks are stuck; so often their stacks are compared, too
CHEAP_LOOKS = 3  # of those, that leave the ranks alone
SPINNING_SHARE = 0.5  # of a CPU: who takes that in a call waits for others by looking again and again
WHISPER = 4096  # bytes: what the threads beside the first one may write between two looks and get nowhere
_SERVER = Stacks(NO_SCRIPT)


class Bounds(NamedTuple):
    """How long ranks may stand still, in seconds."""

    floor: float
    """The least that is learnt."""
    ceiling: float
    """What holds as long as nothing is, and for ranks that may work."""


class HangListener(Protocol):
    """Who hears of the ranks of a host."""

    def ranks_stand(self, standing: dict[int, StandingRank] | None, seconds: float) -> None:
        """All have stood still for so many seconds; None as soon as one moves again."""

    def bound_learnt(self, seconds: float) -> None:
        """By what they have written, they may stand still for so long."""


class HangWatch:
    """Tells when every rank of this host has stood still for so long, and when that is over."""

    def __init__(
        self,
        loop: Loop,
        ranks: RankServer,
        layout: Layout,
        dumps: Dumps,
        bounds: Bounds,
        listener: HangListener,
        is_awaited: Callable[[int], bool] = lambda rank: True,
    ) -> None:
        """Ranks that nobody awaits, as servers, get somewhere when they use CPU."""
        self._loop = loop
        self._ranks = ranks
        self._layout = layout
        self._dumps = dumps
        self._bounds = bounds
        self._listener = listener
        self._is_awaited = is_awaited
        self._look_seconds = min(bounds.floor, bounds.ceiling) / LOOKS
        self._patience = HangPatience(bounds.floor, bounds.ceiling)
        self._written = Written(layout)
        self._told_bound: float | None = None
        self._elsewhere: float | None = None
        self._stalls: Lasting | None = None
        self._said: dict[int, bool] | None = None
        """Which ranks may work, as it is told; None as long as nothing is."""
        self._is_told = False
        self._uses: dict[int, Use] = {}
        self._now = AwakeTime(loop)
        self._silent_since = self._now()
        self._comparisons = 0
        self._stacks: dict[int, Stacks] = {}
        self._work = Work(layout.code, self._now)
        self._is_disturbed = False
        """By `py-spy`, which stops ranks for a moment."""
        self._children: dict[int, float] | None = None
        self._is_looking = self._is_closed = False
        self._timers = [loop.after(self._look_seconds, self._look)]

    def close(self) -> None:
        """Look no more: these ranks have ended."""
        self._is_closed = True
        for timer in self._timers:
            timer.cancel()
        self._now.close()
        self._said = None

    def begin_step(self) -> None:
        """Other scripts run from now on, of which nothing is known."""
        self._patience = HangPatience(self._bounds.floor, self._bounds.ceiling)
        self._told_bound = self._elsewhere = None
        self._moved()

    def stalled(self, stall: Stall) -> None:
        """Horovod waits for ranks: its own words and threads are no signs of life as long as that lasts."""
        from ..horovod_stalls import Lasting

        self._stalls = self._stalls or Lasting()
        self._stalls.tell(stall)

    def learnt_elsewhere(self, seconds: float) -> None:
        """On some host ranks have written so often that none may be silent for longer."""
        self._elsewhere = seconds

    @property
    def bound(self) -> float:
        """How long these ranks may stand still before somebody is told."""
        known = (self._patience.learnt, self._elsewhere, self._bounds.ceiling)
        return min(each for each in known if each is not None)

    @property
    def _stall(self) -> Stall | None:
        return self._stalls.stall if self._stalls is not None else None

    # Cheap looks: what ranks have written.

    def _look(self) -> None:
        self._timers = [self._loop.after(self._look_seconds, self._look)]
        if self._ranks.pids and not self._is_looking:  # else all have ended, which others know
            self._is_looking = True
            stall = self._stall
            self._loop.aside(lambda: self._written.progressed(stall), self._looked)

    def _looked(self, progressed: bool) -> None:
        self._is_looking = False
        if self._is_closed or not self._ranks.pids:
            return
        if progressed:
            self._patience.progress(self._now())
            self._tell_bound()
        before, self._uses = self._uses, self._uses_now()
        if progressed or self._wrote_since(before):
            self._moved()
        elif self._now() - self._silent_since >= self._next_comparison:
            for pid in self._ranks.pids.values():
                self._dumps.ask(pid)
            self._timers.append(self._loop.after(min(DUMP_SECONDS, self._look_seconds / 2), self._compare))

    def _tell_bound(self) -> None:
        learnt = self._patience.learnt
        if learnt is not None and learnt != self._told_bound:
            self._told_bound = learnt
            self._listener.bound_learnt(learnt)

    def _uses_now(self) -> dict[int, Use]:
        return {rank: evidence.use(pid) for rank, pid in self._ranks.pids.items()}

    def _wrote_since(self, before: dict[int, Use]) -> bool:
        """Whether a rank has started, ended, or read or written anything but a few bytes in another thread."""
        if before.keys() != self._uses.keys():
            return True
        return any(self._wrote(before[rank], use) for rank, use in self._uses.items())

    def _wrote(self, before: Use, now: Use) -> bool:
        if before.moved_by_first != now.moved_by_first:
            return True
        # During a stall Horovod's threads go on to ask each other, and those are not the first.
        return self._stall is None and now.written - before.written >= WHISPER

    # Thorough ones: where they stand.

    @property
    def _next_comparison(self) -> float:
        return self.bound * (CHEAP_LOOKS + self._comparisons) / LOOKS

    def _compare(self) -> None:
        stacks = {rank: self._stacks_of(rank, pid) for rank, pid in self._ranks.pids.items()}
        before, self._stacks = self._stacks, stacks
        self._uses = self._uses_now()  # the stacks themselves are something written
        is_first = self._comparisons == 0
        self._comparisons += 1
        children_worked = self._children_worked()
        if not all(each.text for each in stacks.values()) or self._waits_for_us():
            self._moved()
        elif is_first or self._is_disturbed:
            self._work.begin(self._uses)
        elif stacks != before or children_worked or self._somebody_works():
            self._moved()
        elif self._now() - self._silent_since >= self.bound:
            self._tell()

    def _somebody_works(self) -> bool:
        """Whether a rank does that nobody awaits."""
        self._work.measure(self._uses, self._stacks)
        return not all(self._is_awaited(rank) for rank in self._work.ranks)

    def _tell(self) -> None:
        works = {rank: self._work.may_work(rank, self.bound) for rank in self._ranks.pids}
        if works == self._said:
            return
        self._said = works
        pids, since = dict(self._ranks.pids), self._silent_since
        steps = self._written.steps()
        standing = {rank: self._standing(rank, pid, steps.get(rank)) for rank, pid in pids.items()}

        def tell() -> None:
            self._is_disturbed = False
            self._uses = self._uses_now()
            self._work.begin(self._uses)
            if self._said is works:  # else they have moved meanwhile, or this is over
                told = {rank: each._replace(native=self._dumps.native(pids[rank])) for rank, each in standing.items()}
                self._is_told = True
                self._listener.ranks_stand(told, self._now() - since)

        self._is_disturbed = True
        self._dumps.ask_for_native(pids.values(), tell)

    def _standing(self, rank: int, pid: int, step: LastStep | None) -> StandingRank:
        stacks = self._stacks[rank]
        call = waiting.call_in(stacks.first, self._layout.code)
        share = self._work.shares.get(rank, 0.0)
        return StandingRank(
            stack=stacks.text,
            place=waiting.place_of(stacks.first),
            works=self._work.may_work(rank, self.bound),
            sleeps=evidence.sleeps(pid) or waiting.says_sleep(stacks.first, self._layout.code),
            call=call.name if call is not None else "",
            is_collective=call is not None and call.is_collective,
            spins=call is not None and share > SPINNING_SHARE,
            collectives=self._dumps.collectives(pid),
            output_age=self._written.output_age(rank),
            step=step.number if step is not None else None,
            step_age=step.age if step is not None else None,
            checkpoint_age=self._written.checkpoint_age,
            cpu=round(share, 2),
            kernel=evidence.summary(pid),
        )

    def _moved(self) -> None:
        self._begin_silence()
        self._said = None
        if self._is_told:
            self._is_told = False
            self._listener.ranks_stand(None, 0.0)

    def _begin_silence(self) -> None:
        self._silent_since = self._now()
        self._comparisons = 0
        self._stacks, self._children = {}, None
        self._work.forget()

    def _waits_for_us(self) -> bool:
        return any(evidence.waits_for_us(pid, self._layout.data) for pid in self._ranks.pids.values())

    def _children_worked(self) -> bool:
        """A rank may stand still because a program of its own does the work."""
        before = self._children
        below = {child for pid in self._ranks.pids.values() for child in descendants(pid)}
        self._children = {child: evidence.cpu_seconds(str(child)) for child in below}
        idle = BUSY_SHARE * self.bound / LOOKS
        return before is not None and any(
            seconds - before.get(child, 0.0) > idle for child, seconds in self._children.items()
        )

    def _stacks_of(self, rank: int, pid: int) -> Stacks:
        return _SERVER if self._ranks.module_of(rank) is not None else self._dumps.stacks(pid)
