"""One host of a job, from its configuration to its exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..contract.events import Ended, Stopping
from ..failures.kind import Kind, of_error
from ..failures.outcome import SCHEDULER_SECONDS, Outcome
from ..failures.verdict import Verdict
from ..logs import console
from ..mesh.endpoint import Endpoint, address_of
from ..ranks.server import RankCommand
from ..runtime.children import become_subreaper, kill_descendants
from ..runtime.errors import ConfigurationError
from ..worlds.world import DirectWorld
from . import placement
from .coordination.port import Coordinator, HostPort
from .local_ranks import LocalRanks
from .preparation.phases import Preparation, PreparationFailed
from .spec import HostSpec
from .toolkit import Toolkit

if TYPE_CHECKING:
    from ..failures.horovod_stalls import Stall
    from .coordination.platform_line import PlatformLine

CONSOLE_SECONDS = 10.0  # that a slow reader of the container's output has for the last lines


class JobEnded(Exception):
    """The job's outcome is known before this host came to its end by itself."""


class AttemptOver(Exception):
    """The ranks of all hosts are to be ended, and the hosts stand by."""


class Host:
    """This host: its phases, its stop and its end."""

    def __init__(self, spec: HostSpec, take_part: Callable[[HostPort], Coordinator]) -> None:
        """`take_part` gives the host its part in the job. Raises ConfigurationError or OSError."""
        self.spec = spec
        self.toolkit = Toolkit(spec.settings)
        self.outcome: Outcome | None = None
        self.stopping = False
        self._failed: Verdict | None = None
        """Why the attempt has failed after which this host stands by, or is about to."""
        self._has_left = False
        """Whether the ranks of the attempt are ended, and it is said how it came to that."""
        self._steps_over = 0
        self._endpoint: Endpoint | None = None
        self.platform: PlatformLine | None = None
        self._console: int | None = None
        self._coordinator = take_part(self)
        self.restarts = spec.settings.restarts
        self._cpus_of = placement.cpus_of_ranks(spec)  # to ask for GPUs may take seconds, which no later attempt has
        self._ranks = self._new_ranks()

    # The phases.

    def run(self) -> int:
        """Do the job's work on this host; returns the exit code for the platform."""
        become_subreaper()
        self._watch_platform()
        self._show_on_console()
        name = self.spec.name
        try:
            self._work()
        except JobEnded:
            pass
        except PreparationFailed as failed:
            self._report(failed.verdict)
        except (ConfigurationError, OSError) as error:
            self._report(Verdict(of_error(error), f"{name}: {error}", host=name))
        except Exception as error:
            import traceback

            what = f"the toolkit on {name} failed: {type(error).__name__}: {error}"
            self._report(Verdict(Kind.TOOLKIT, what, host=name, detail=traceback.format_exc()))
        return self._end()

    def _work(self) -> None:
        self._listen_to_platform()
        self._coordinator.open()
        if isinstance(self.spec.world, DirectWorld):
            self._endpoint = Endpoint(address_of(self.spec.cluster), self.spec.world.ports_per_host)
        commands = Preparation(self.spec, self.toolkit, self._until).run()
        self._coordinator.prepared()
        while True:
            try:
                self._run_steps(commands)
            except AttemptOver:
                self._stand_by()

    def _run_steps(self, commands: Sequence[RankCommand]) -> None:
        first, *others = commands
        with self.toolkit.events.phase("world"):
            self._assemble(0, first)
        with self.toolkit.events.phase("run"):
            self._ranks.watch_for_hangs()
            for number, command in enumerate(others, 1):
                self._until_steps_are_over(number)
                self._assemble(number, command)
            self._until(lambda: False)

    def _assemble(self, step: int, command: RankCommand) -> None:
        """Have all ranks of this host run the command of a step."""
        self._ranks.expect(command)
        self._coordinator.ready()
        self._until(lambda: self._ranks.all_started)
        self._coordinator.ranks_started(step)

    def _until_steps_are_over(self, number: int) -> None:
        self._until(lambda: self._steps_over >= number)

    def _until(self, done: Callable[[], bool]) -> None:
        self.toolkit.loop.run_until(lambda: self.outcome is not None or self._failed is not None or done())
        if self.outcome is not None:
            raise JobEnded
        if self._failed is not None:
            raise AttemptOver

    def _stand_by(self) -> None:
        """End this host's part in an attempt that has failed, and wait for the next one."""
        assert self._failed is not None
        self._coordinator.let_go()
        self._leave(Outcome("failed", self._failed))
        self._coordinator.let_go()  # again: a rank may have been found to stand while the others ended
        self.toolkit.end_programs(() if self._console is None else (self._console,))
        self.toolkit.flush_events()
        self._coordinator.cleared()
        self.toolkit.loop.run_until(lambda: self.outcome is not None or self._failed is None)
        if self.outcome is not None:
            raise JobEnded

    def _report(self, found: Verdict) -> None:
        """Say that this host failed, and wait for what the first host makes of it."""
        self._coordinator.report(found)
        self.toolkit.loop.run_until(lambda: self.outcome is not None)

    # What its part in the job asks of it.

    @property
    def endpoint(self) -> str:
        return self._endpoint.text if self._endpoint is not None else ""

    def start_ranks(self, endpoints: Sequence[str]) -> None:
        self._ranks.start(endpoints)

    def stalled(self, stall: Stall) -> None:
        self._ranks.stalled(stall)

    def bound_learnt(self, seconds: float) -> None:
        self._ranks.bound_learnt(seconds)

    def step_over(self) -> None:
        self._steps_over += 1

    def end_attempt(self, found: Verdict) -> None:
        self._failed = found

    def begin_again(self, so_far: int | None) -> None:
        self._failed, self._has_left = None, False
        self._steps_over = 0
        self.toolkit.begin_again()
        self.restarts = self.restarts.next(so_far)
        self._ranks = self._new_ranks()

    def _new_ranks(self) -> LocalRanks:
        return LocalRanks(self.spec, self.toolkit, self._coordinator, self.restarts, self._cpus_of)

    def stop(self) -> None:
        self._stop(SCHEDULER_SECONDS if self.has_scheduler else 0.0)

    def _stop(self, tell_ranks_after: float) -> None:
        """The first counts of what tells this host to stop, and for its ranks the one that tells them soonest."""
        if self.outcome is not None:
            return
        if not self.stopping:
            self.stopping = True
            self.toolkit.events.emit(Stopping())
            grace = self.spec.settings.stop_timeout
            self._ranks.stop(grace)
            self.toolkit.loop.after(grace + 1.0, lambda: self.end(Outcome("stopped")))
        if tell_ranks_after:
            self.toolkit.loop.after(tell_ranks_after, self._ranks.tell_to_end)
        else:
            self._ranks.tell_to_end()

    @property
    def has_scheduler(self) -> bool:
        return self.spec.settings.platform_address is not None

    def end(self, outcome: Outcome) -> None:
        if self.outcome is None:
            self.outcome = outcome

    # What the platform says, and is shown.

    def _watch_platform(self) -> None:
        loop = self.toolkit.loop
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.on_signal(signum, self._signalled)
        if os.path.exists(self.spec.layout.stop_request):
            self._told_to_stop()
        lifeline = self.spec.settings.lifeline_fd
        if lifeline is not None:
            loop.on_readable(lifeline, lambda: self._lifeline_ended(lifeline))

    def _listen_to_platform(self) -> None:
        if self.has_scheduler or os.path.exists(self.spec.layout.platform):
            from .coordination.platform_line import PlatformLine  # most have nothing to say

            self.platform = PlatformLine(self.spec, self.toolkit.loop, self._told_to_stop, self._platform_gone)
            self.platform.begin_to_beat()

    def _signalled(self) -> None:
        self.stop()
        self._coordinator.stop()

    def _told_to_stop(self) -> None:
        self._stop(0.0)
        self._coordinator.stop()

    def _lifeline_ended(self, lifeline: int) -> None:
        self.toolkit.loop.forget(lifeline)
        self._platform_gone()

    def _platform_gone(self) -> None:
        self.end(Outcome("stopped"))

    def _show_on_console(self) -> None:
        """Show the ranks' lines on this container's standard output, unless the platform reads the frames itself."""
        if self.spec.settings.shows_console:
            argv = [sys.executable, "-I", "-S", console.__file__, self.spec.layout.frames, self.spec.name]
            self._console = self.toolkit.children.start(argv, os.environ, self._console_ended)

    def _console_ended(self, code: int) -> None:
        self._console = None

    def _wait_for_console(self) -> None:
        """Its last lines matter, but not for ever: nobody may be reading them."""
        self.toolkit.loop.run_until(lambda: self._console is None, CONSOLE_SECONDS)

    # The end.

    def _end(self) -> int:
        outcome = self.outcome
        assert outcome is not None
        self._coordinator.close()
        if self.platform is not None:
            self.platform.close()
        try:
            if not self._has_left:  # as it has where its last attempt failed
                self._leave(outcome)
        finally:
            self.toolkit.flush_events()  # `Ended` among them, at which the console ends
        if self._endpoint is not None:
            self._endpoint.close()
        self._wait_for_console()
        kill_descendants()
        self.toolkit.flush_events()
        self.toolkit.remove_folders()
        return outcome.exit_code

    def _leave(self, outcome: Outcome) -> None:
        """End the ranks, and say how it came to that, whatever comes between."""
        self._has_left = True
        try:
            if outcome.kind != "stopped":
                self._ranks.end_those_left()
            self._ranks.close()
        finally:
            outcome.write(self.spec.layout)
            reason = outcome.verdict.masked().message if outcome.verdict else ""
            self.toolkit.events.emit(Ended(outcome.kind, reason))
