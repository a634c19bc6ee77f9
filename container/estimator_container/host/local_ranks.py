"""The ranks of one host: how they start, who watches them, how they end."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from ..contract import events
from ..contract.names import STEPS_PREFIX
from ..failures import verdict
from ..logs.frames import NO_RANK, SPAWNED
from ..ranks.server import WRAPPER, RankCommand, RankEnd, RankServer, rank_or_none
from ..runtime import machine, private_folder
from ..runtime.loop import Timer
from ..worlds.mpi.world import MpiWorld
from ..worlds.world import DirectWorld
from .commands import environment_of_programs
from .coordination.port import Coordinator
from .measuring import Measuring
from .spec import HostSpec
from .toolkit import Toolkit

if TYPE_CHECKING:
    from ..contract.settings import Restarts
    from ..failures.hangs.watch import HangWatch
    from ..failures.horovod_stalls import Lasting, Stall
    from .step_watch import StepWatch

FROZEN_SECONDS = 3.0  # that a rank may be stopped, by a debugger's hand or another's, before it has failed
HANG_WATCH_SECONDS = 1.0  # after which ranks begin to be watched: a job that ends before does not load what does so
STEPS_SECONDS = 1.0  # after which it is looked whether the ranks train
VICTIM_GRACE = 0.25  # seconds between SIGTERM and SIGKILL for ranks whose world has failed


class LocalRanks:
    """The ranks of this host; what becomes of them the coordinator hears."""

    def __init__(
        self,
        spec: HostSpec,
        toolkit: Toolkit,
        coordinator: Coordinator,
        restarts: Restarts,
        cpus_of: Callable[[int, int], Collection[int]],
    ) -> None:
        """`restarts` are those that came before this attempt; `cpus_of` as `placement.cpus_of_ranks` gives it."""
        self._spec = spec
        self._toolkit = toolkit
        self._coordinator = coordinator
        self._restarts = restarts
        self._started: set[int] = set()
        self._stopping = False
        self._frozen: dict[int, Timer] = {}
        self._hang_watch: HangWatch | None = None
        self._before_hang_watch: Timer | None = None
        self._bound: float | None = None
        self._stalls: Lasting | None = None
        self._step_watch: StepWatch | None = None
        self._began = time.monotonic_ns()
        self._first_look = toolkit.loop.after(STEPS_SECONDS, self._watch_steps)
        self._earlier_kills = machine.out_of_memory_kills()
        self._measuring = Measuring(spec, toolkit)
        self._server = RankServer(
            toolkit.loop,
            toolkit.socket,
            self._on_started,
            self._on_ended,
            self._on_frozen,
            coordinator.weights_seen,
            self._on_stalled,
        )
        self._server.deferential = spec.lacks_cpus
        if isinstance(spec.world, MpiWorld):
            self._server.mpirun_watches = True
        self._server.cpus_of = cpus_of
        self._server.on_spawned = coordinator.spawned

    # From their start to their end.

    def expect(self, command: RankCommand) -> None:
        """Have all that start from now on run the command of a step."""
        if command.alive:
            private_folder.make_below(command.alive, 0o700)
        with contextlib.suppress(OSError):
            fd = os.open(self._spec.layout.training_steps, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(fd, "w", encoding="utf-8") as file:
                file.write(self._toolkit.shared_memory)
        self._server.command = command
        self._started.clear()
        self._bound = None
        if self._hang_watch is not None:
            self._hang_watch.begin_step()

    @property
    def all_started(self) -> bool:
        """Whether all run that command."""
        world = self._spec.world
        return len(self._started) >= (world.processes_per_host if world else 1)

    def start(self, endpoints: Sequence[str]) -> None:
        """Start the script under a wrapper: once without a world, else as each rank of this host.

        `endpoints` are those of all hosts, in their order.
        """
        ranks: Sequence[int] = (NO_RANK,)
        world = self._spec.world
        if isinstance(world, DirectWorld):
            ranks = world.ranks_of(self._spec.name)
            of_attempt = world.variables_of_attempt(self._restarts)
            self._server.variables_of = lambda rank: {**world.variables_of(rank, endpoints), **of_attempt}
            self._server.module_of = world.module_of
        env = environment_of_programs(self._spec, self._toolkit)
        for rank in ranks:
            argv = [sys.executable, "-I", "-S", WRAPPER, str(rank)]
            ended = self._server.expect_wrapper(rank)
            # A scheduler may signal all processes of the host before the wrapper can take a signal.
            self._toolkit.children.start(argv, env, ended, blocked=(signal.SIGTERM,))

    def stop(self, grace: float) -> None:
        """Let them end, each in its own time; end them after so many seconds."""
        self._stopping = True
        self._server.hold()
        self._toolkit.loop.after(grace, lambda: self._server.signal_all(signal.SIGKILL))

    def end_those_left(self) -> None:
        """Ask those that still run to end; what they write meanwhile is kept."""
        for signum in (signal.SIGTERM, signal.SIGKILL):
            self._server.signal_all(signum)
            self._toolkit.loop.run_until(lambda: not self._server.pids, VICTIM_GRACE)

    def close(self) -> None:
        """Stop listening to the ranks' wrappers."""
        self._server.close()
        if self._before_hang_watch is not None:
            self._before_hang_watch.cancel()
        self._first_look.cancel()
        self._measuring.close()
        if self._have_trained:
            self._watch_steps().close()
        if self._hang_watch is not None:
            self._hang_watch.close()
        for rank in list(self._frozen):
            self._thawed(rank)

    def tell_to_end(self) -> None:
        """Have those that run the script end in their own way, if nobody has told them so far."""
        self._server.hold()
        self._server.tell_scripts_to_end()

    def _on_started(self, rank: int) -> None:
        self._toolkit.events.emit(events.RankStarted(rank_or_none(rank)))
        if rank in self._server.pids:
            self._measuring.rank_started(rank, self._server.pids[rank])
        if rank < SPAWNED:
            self._started.add(rank)
        if self._stopping:
            self.tell_to_end()

    def _on_ended(self, ended: RankEnd) -> None:
        self._thawed(ended.rank)
        if self._have_trained:
            self._watch_steps().rank_ended(rank_or_none(ended.rank))
        self._toolkit.events.emit(events.RankEnded(rank_or_none(ended.rank), ended.code))
        if ended.code == -signal.SIGKILL and machine.out_of_memory_kills() > self._earlier_kills:
            ended = ended._replace(out_of_memory=True)
        self._coordinator.rank_ended(ended)

    # What they train.

    @property
    def _have_trained(self) -> bool:
        """Whether any rank has counted a step."""
        try:
            names = os.listdir(self._toolkit.shared_memory)
        except FileNotFoundError:  # a script that tidies up may have removed it
            names = []
        return self._step_watch is not None or any(name.startswith(STEPS_PREFIX) for name in names)

    def _watch_steps(self) -> StepWatch:
        """Look from now on at what the ranks count."""
        if self._step_watch is None:
            from .step_watch import StepWatch  # a job that ends before has no need of these
            from .windows import Windows

            loop, events, pages = self._toolkit.loop, self._toolkit.events, self._toolkit.shared_memory
            asked = self._coordinator.timeline_asked
            windows = Windows(loop, self._toolkit.with_files, self._spec.layout, pages, asked)
            self._step_watch = StepWatch(loop, events, pages, self._began, self._coordinator.steps_seen, windows)
        return self._step_watch

    # Who does not move.

    def watch_for_hangs(self) -> None:
        """From now on the ranks are not to stand still for longer than the job allows."""
        seconds = self._spec.settings.hang_timeout
        if seconds:
            first = min(HANG_WATCH_SECONDS, seconds / 2)
            self._before_hang_watch = self._toolkit.loop.after(first, self._begin_hang_watch)

    def _begin_hang_watch(self) -> None:
        from ..failures.hangs.dumps import Dumps
        from ..failures.hangs.watch import Bounds, HangWatch

        settings, world = self._spec.settings, self._spec.world
        toolkit, command = self._toolkit, self._server.command
        path = command.settings["PATH"] if command is not None else ""
        dumps = Dumps(toolkit.loop, toolkit.children, toolkit.stacks, settings.layout.code, path)
        self._hang_watch = HangWatch(
            toolkit.loop,
            self._server,
            settings.layout,
            dumps,
            Bounds(settings.hang_floor, settings.hang_timeout),
            self._coordinator,
            world.is_awaited if world is not None else lambda rank: True,
        )
        if self._bound is not None:
            self._hang_watch.learnt_elsewhere(self._bound)

    def bound_learnt(self, seconds: float) -> None:
        """By what the ranks of some host have written, none may be silent for longer."""
        self._bound = seconds
        if self._hang_watch is not None:
            self._hang_watch.learnt_elsewhere(seconds)

    def stalled(self, stall: Stall) -> None:
        """Horovod on a rank of some host says whom it waits for."""
        if self._hang_watch is not None:
            self._hang_watch.stalled(stall)

    def _on_frozen(self, rank: int, signum: int) -> None:
        """`signum` is what stopped it, or 0 when it goes on."""
        number = rank_or_none(rank)
        self._toolkit.events.emit(events.RankFrozen(number) if signum else events.RankThawed(number))
        self._thawed(rank)  # it may have been stopped again before anybody heard that it went on
        if not signum:
            return
        found = verdict.of_frozen_rank(self._spec.name, rank_or_none(rank), signum, FROZEN_SECONDS)
        self._frozen[rank] = self._toolkit.loop.after(FROZEN_SECONDS, lambda: self._coordinator.report(found))

    def _thawed(self, rank: int) -> None:
        timer = self._frozen.pop(rank, None)
        if timer is not None:
            timer.cancel()

    def _on_stalled(self, rank: int, stderr_tail: str) -> None:
        """Horovod on this rank says whom it waits for; it says so again for as long as that lasts."""
        from ..failures import horovod_stalls  # only where Horovod has said so

        self._stalls = self._stalls or horovod_stalls.Lasting()
        stall = horovod_stalls.last_in(stderr_tail.encode())
        if stall is None:
            return
        if stall != self._stalls.stall:
            told = events.HorovodStalled(rank_or_none(rank), stall.seconds, stall.missing)
            self._toolkit.events.emit(told)
        self._stalls.tell(stall)
        self._coordinator.stalled(stall)
