"""What the first host does for all: gathers the others, starts the world, decides how the job ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...contract.events import FailureFound, WorldStarting
from ...failures.killed import KilledOrLost
from ...failures.kind import Kind
from ...failures.outcome import CULPRIT_SECONDS, LAST_REPORTS_SECONDS, Outcome
from ...failures.verdict import Verdict
from ...mesh import common_secret
from ...ranks.server import RankEnd
from ...runtime.errors import ConfigurationError
from ...worlds.mpi.world import MpiWorld
from .others import Others
from .step_run import StepRun
from .training_watch import TrainingWatch

if TYPE_CHECKING:
    from ...failures.hangs.standing import StandingRank
    from ...failures.horovod_stalls import Stall
    from ...mesh.pulse import Loss
    from ...training.page import StepCount
    from .port import HostPort
    from .restart import Restart


class Leader:
    """The first host's part in the job: see `Coordinator` of the port, and who hears of the others."""

    def __init__(self, host: HostPort) -> None:
        self._host = host
        self._spec = host.spec
        self._loop = host.toolkit.loop
        self._events = host.toolkit.events
        self._endpoints: dict[str, str] = {}
        self._others = Others(host.spec, host.toolkit, self)
        self._killed = KilledOrLost(self._spec.name, self._others, self._fail, self._loop, host.has_scheduler)
        self._restart: Restart | None = None
        """None for a job of one attempt, and on a platform that starts each attempt on hosts of its own."""
        self._begin_step(0)

    def open(self) -> None:
        """Let the other hosts join. Raises ConfigurationError or OSError when they could not."""
        line = self._host.platform
        if line is not None and line.may_say_again:
            from .restart import Restart  # most jobs have one attempt

            self._restart = Restart(self._host, line, self._others, lambda: self._begin_step(0), self._end)
        self._others.open(line)
        self._others.begin_to_beat()

    # This host's own news.

    def prepared(self) -> None:
        pass

    def ready(self) -> None:
        self.host_ready(self._spec.name, self._host.endpoint)

    def ranks_started(self, step: int) -> None:
        self.host_started(self._spec.name, step)

    def report(self, found: Verdict) -> None:
        """Something failed on some host: the attempt fails, and with it the job, unless the platform wants another."""
        if not self.is_ending_attempt and not self._killed.keeps(found):  # else it may be a consequence
            self._fail(found)

    def _fail(self, found: Verdict) -> None:
        self._killed.forget()
        if self._host.outcome is not None or (self._host.stopping and found.is_user_failure):
            return
        found, restart = self._run.named(found), self._restart
        self._events.emit(FailureFound(found.masked().message))
        if restart is None or self._host.stopping or not self._run.runs or not restart.is_possible_after(found):
            self._end(Outcome("failed", found))
        else:
            self._late.cancel()
            self.let_go()  # or mpirun's next word could have another host start a daemon after it has cleared
            restart.begin(found)

    def spawned(self, rank: int) -> None:
        self.host_spawned(self._spec.name, rank)

    def rank_ended(self, ended: RankEnd) -> None:
        self.host_rank_ended(self._spec.name, ended)

    def ranks_stand(self, standing: dict[int, StandingRank] | None, seconds: float) -> None:
        self.host_stands(self._spec.name, standing, seconds)

    def bound_learnt(self, seconds: float) -> None:
        self.host_bound_learnt(self._spec.name, seconds)

    def weights_seen(self, look: list[str]) -> None:
        self._training.weights_seen(look)

    def steps_seen(self, counts: Sequence[StepCount]) -> None:
        self._training.steps_seen(counts)

    def timeline_asked(self) -> None:
        self._others.compare_clocks()

    def let_go(self) -> None:
        if self._run.mpirun is not None:
            self._run.mpirun.last_words()
        self._close_run()

    def cleared(self) -> None:
        self.host_cleared(self._spec.name)

    def stop(self) -> None:
        self._others.tell("stop")
        if self.is_ending_attempt or not self._run.runs or self._run.all_ended:
            self._end(Outcome("stopped"))

    def close(self) -> None:
        outcome, mpirun = self._host.outcome, self._run.mpirun
        if mpirun is not None and outcome is not None and outcome.kind == "failed":
            mpirun.last_words()  # what it says from now on is of the end that is made of it here
        self._close_run()
        self._others.close()
        if self._restart is not None:
            self._restart.close()

    # News of any host.

    @property
    def is_ending_attempt(self) -> bool:
        return self._restart is not None and self._restart.failed is not None

    def told_to_stop(self) -> None:
        self._host.stop()
        self.stop()

    def host_lost(self, host: str, how: Loss) -> None:
        if self._host.stopping:
            self._end(Outcome("stopped"))  # its own grace period was over
        elif self._restart is not None and self.is_ending_attempt:
            self._restart.lost(host)
        else:
            self._others.blame_for(host, how)

    def host_cleared(self, host: str) -> None:
        if self._restart is not None:
            self._restart.cleared(host)

    def host_ready(self, host: str, endpoint: str) -> None:
        self._endpoints[host] = endpoint
        self._run.ready.add(host)
        if isinstance(self._spec.world, MpiWorld) and host == self._spec.name:
            self._start_mpirun(self._spec.world)
        if self._run.mpirun is not None:
            self._run.mpirun.host_is_ready(host)
        if self._run.runs:
            self._late.cancel()
            self._start()

    def host_started(self, host: str, step: int) -> None:
        self._run.ranks_started(host, step)
        if self._run.all_started:
            self._late.cancel()

    def host_spawned(self, host: str, rank: int) -> None:
        self._run.spawned.add((host, rank))

    def daemon_answered(self, host: str, outcome: str) -> None:
        if self._run.mpirun is not None:
            self._run.mpirun.daemon_answered(host, outcome)

    # The world.

    def _start(self) -> None:
        common_secret.forget(self._spec.layout)
        seconds = self._spec.settings.world_timeout
        self._late = self._loop.after(seconds, lambda: self.report(self._run.verdict_on_late_ranks(seconds)))
        if self._run.step is not None:
            self._run.announce(self._events, len(self._spec.settings.steps))
        world, mpirun = self._spec.world, self._run.mpirun
        if mpirun is not None and isinstance(world, MpiWorld):  # it runs, and waited for the last of its daemons only
            self._events.emit(WorldStarting(world.hosts, world.size, world.shown(mpirun.command)))
            return
        endpoints = [self._endpoints[host] for host in self._spec.hosts]
        if world is not None:
            self._events.emit(WorldStarting(world.hosts, world.size, endpoints=endpoints))
        self._others.tell("go", *endpoints)
        self._host.start_ranks(endpoints)

    def _start_mpirun(self, world: MpiWorld) -> None:
        """It starts the ranks when it has its daemons: each one as soon as its host is ready."""
        from .mpirun import Mpirun  # other worlds have no need of it

        ask = self._others.ask_for_daemon
        self._run.mpirun = Mpirun(self._spec, self._host.toolkit, world, self._run.ready, ask)
        try:
            self._run.mpirun.start(self._mpirun_ended, is_first=self._run.number == 0)
        except ConfigurationError as error:
            self.report(Verdict(Kind.MPI, f"{self._spec.name}: {error}", host=self._spec.name))

    # The end.

    def host_rank_ended(self, host: str, ended: RankEnd) -> None:
        if self.is_ending_attempt:
            return
        if ended.code != 0:
            self._host.toolkit.children.reap_ending()  # it may have failed because mpirun is gone
        if self._run.mpirun is None:
            ended = ended._replace(told=False)  # nobody but mpirun tells wrappers to end
        self._run.rank_ended(host, ended)
        if self._host.stopping:
            if self._run.all_ended:
                self._end(Outcome("stopped"))
        elif ended.code != 0 and not ended.told:
            self._report_rank(self._run.verdict_on_rank(host, ended))
        elif ended.told:
            run = self._run
            self._loop.after(CULPRIT_SECONDS, lambda: self._told_by_mpirun(run))
        elif self._run.all_ended_well and not self._killed.is_keeping:
            self._step_done()
        elif ended.code == 0:
            self._training.rank_ended(ended.rank)

    def _report_rank(self, found: Verdict) -> None:
        """Ranks that reach each other by themselves see that one is gone before its own wrapper can have said so."""
        if self._run.mpirun is None and len(self._run.places) > 1 and found.blames_another:
            run = self._run
            self._loop.after(LAST_REPORTS_SECONDS, lambda: self.report(found) if run is self._run else None)
        else:
            self.report(found)

    def _step_done(self) -> None:
        """Every rank has ended its step: end the job after the last one, else begin the next without a trace of it."""
        self._training.all_ended()
        if self._run.number + 1 >= len(self._spec.settings.steps):
            self._end(Outcome("completed"))
        elif self._run.mpirun is None or not self._run.mpirun.runs:
            self._next_step()

    def _next_step(self) -> None:
        self._late.cancel()
        self._close_run()
        self._begin_step(self._run.number + 1)
        self._others.tell("step_over")
        self._host.step_over()

    def _begin_step(self, number: int) -> None:
        """Wait for all hosts to be ready for it, for so long."""
        run, wait = StepRun.for_step(self._spec, number), self._spec.settings.world_timeout
        self._run = run
        self._training = TrainingWatch(self._host, self._others, run, self.report)
        self._late = self._loop.after(wait, lambda: self.report(run.verdict_on_late_hosts(wait, self._others.missing)))

    def _told_by_mpirun(self, run: StepRun) -> None:
        """mpirun ends the ranks though none has failed: one has left without MPI_Finalize. It says so seconds later."""
        found = run.verdict_on_leaver()
        if found is not None and run is self._run and self._host.outcome is None and not self._host.stopping:
            self.report(found)

    def host_stands(self, host: str, standing: dict[int, StandingRank] | None, seconds: float) -> None:
        self._training.host_stands(host, standing, seconds)

    def host_bound_learnt(self, host: str, seconds: float) -> None:
        self._training.bound_learnt(host, seconds)

    def stalled(self, stall: Stall) -> None:
        self._training.stalled(stall)

    def _mpirun_ended(self, code: int) -> None:
        if self.is_ending_attempt:
            return
        if self._run.all_ended_well and self._host.outcome is None and not self._host.stopping:
            self._step_done()
        elif code < 0:  # ranks that lose it exit with an error of their own, so nobody is asked first
            self._without_reports(code)
        else:
            wait = self._run.seconds_for_reports(code)
            self._run.without_reports = self._loop.after(wait, lambda: self._without_reports(code))

    def _without_reports(self, code: int) -> None:
        """mpirun is gone, and no rank has said that it failed."""
        assert self._run.mpirun is not None
        words = self._run.mpirun.last_words()
        if self._host.stopping:
            self._end(Outcome("stopped"))
        else:
            self.report(self._run.verdict_on_mpirun(self._spec.name, code, words))

    def _close_run(self) -> None:
        """Wait for nobody of a step any more."""
        self._run.close()
        self._training.close()

    def _end(self, outcome: Outcome) -> None:
        """End the job on every host."""
        if self._host.outcome is None:
            self._host.end(outcome)
            self._others.tell("end", *outcome.to_fields())
