"""What the first host does for all: gathers the others, starts the world, decides how the job ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contract.events import HostJoined, WorldStarting
from ...failures import verdict
from ...failures.kind import Kind
from ...failures.late import LateWatch
from ...failures.outcome import CULPRIT_SECONDS, Outcome
from ...failures.silence import Silence
from ...failures.verdict import Verdict
from ...logs.frames import SPAWNED
from ...mesh import common_secret
from ...mesh.endpoint import listening_socket
from ...ranks.server import Ended
from ...runtime.errors import ConfigurationError
from ...worlds.mpi.world import World as MpiWorld
from .step_run import StepRun

if TYPE_CHECKING:
    from ...failures.horovod_stalls import Stall
    from ...mesh import mesh
    from .port import HostPort

# After mpirun's own end the reports of the last ranks are still on their way from other hosts.
LAST_REPORTS_SECONDS = 2.0


class Leader:
    """The first host's part in the job: see `Coordinator` of the port."""

    def __init__(self, host: HostPort) -> None:
        self._host = host
        self._spec = host.spec
        self._loop = host.toolkit.loop
        self._events = host.toolkit.events
        self._endpoints: dict[str, str] = {}
        self._run = StepRun.of(self._spec, 0)
        self._late_ranks = LateWatch(self._loop, self._events)
        self._mesh: mesh.Leader | None = None
        self._silence = Silence(self._loop, self._spec.name, self._spec.hosts[1:], self.report)

    def open(self) -> None:
        """Let the other hosts join. Raises ConfigurationError or OSError when they could not."""
        self._late = self._loop.after(self._spec.world_timeout, self._too_late)
        if len(self._spec.hosts) == 1:
            return
        from ...mesh import mesh  # a single host has none

        secret = self._spec.required_secret()
        self._mesh = mesh.Leader(
            self._loop,
            listening_socket(),
            secret,
            self._spec.hosts[1:],
            self._on_message,
            lambda host: self._events.emit(HostJoined(host)),
            self._on_lost,
        )

    # This host's own news.

    def prepared(self) -> None:
        if self._mesh is not None:
            self._mesh.begin_to_beat()
            self._silence.learn()

    def ready(self) -> None:
        self._is_ready(self._spec.name, self._host.endpoint)

    def ranks_started(self, step: int) -> None:
        self._ranks_started(self._spec.name, step)

    def report(self, found: Verdict) -> None:
        """Something failed on some host: the job fails."""
        self._end(Outcome("failed", self._run.named(found)))

    def spawned(self, rank: int) -> None:
        self._run.spawned.add((self._spec.name, rank))

    def rank_ended(self, ended: Ended) -> None:
        self._rank_ended(self._spec.name, ended)

    def ranks_stand(self, stacks: dict[int, str] | None) -> None:
        self._stand(self._spec.name, stacks)

    def weights_seen(self, look: list[str]) -> None:
        if self._spec.world is None or self._host.outcome is not None:
            return
        found = self._run.judge_weights(look)
        if found is not None:
            self._events.tell(found.event, found.text)
            if found.ends_the_job:
                self.report(found.verdict(self._spec.world))

    def stop(self) -> None:
        self._broadcast("stop")
        if not self._run.runs:
            self._end(Outcome("stopped"))

    def close(self) -> None:
        outcome, mpirun = self._host.outcome, self._run.mpirun
        if mpirun is not None and outcome is not None and outcome.kind == "failed":
            mpirun.last_words()  # what it says from now on is of the end that is made of it here
        self._run.close()
        if self._mesh is not None:
            self._mesh.close()

    # News from the others.

    def _on_message(self, host: str, message: list[str]) -> None:
        kind, *fields = message
        if kind == "ready":
            self._is_ready(host, fields[0])
        elif kind == "ranks_started":
            self._ranks_started(host, int(fields[0]))
        elif kind == "failed":
            self.report(Verdict.from_json(fields[0]))
        elif kind == "spawned":
            self._run.spawned.add((host, int(fields[0])))
        elif kind == "rank_ended":
            self._rank_ended(host, Ended.from_fields(*fields))
        elif kind == "stand":
            standing = (field.partition(" ") for field in fields)
            self._stand(host, {int(rank): stack for rank, _, stack in standing} or None)
        elif kind == "weights":
            self.weights_seen(fields)
        elif kind == "stalled":
            from ...failures.horovod_stalls import Stall  # only where Horovod has said so

            self.stalled(Stall.from_json(fields[0]))
        elif kind == "daemon":
            if self._run.mpirun is not None:
                self._run.mpirun.daemon_answered(host, fields[0])
        elif kind == "stop":
            self._host.stop()
            self.stop()

    def _on_lost(self, host: str, silent: bool) -> None:
        if self._host.stopping:
            self._end(Outcome("stopped"))  # its own grace period was over
        elif not silent:
            self.report(verdict.of_lost_host(host, self._spec.name))
        else:
            self._silence.begins(host)

    def _is_ready(self, host: str, endpoint: str) -> None:
        self._endpoints[host] = endpoint
        self._run.ready.add(host)
        if isinstance(self._spec.world, MpiWorld) and host == self._spec.name:
            self._start_mpirun(self._spec.world)
        if self._run.mpirun is not None:
            self._run.mpirun.host_is_ready(host)
        if self._run.runs:
            self._late.cancel()
            self._start()

    def _too_late(self) -> None:
        absent = self._mesh.missing if self._mesh else []
        self.report(self._run.verdict_on_late_hosts(self._spec.world_timeout, absent))

    def _ranks_started(self, host: str, step: int) -> None:
        self._run.ranks_started(host, step)
        if self._run.all_started:
            self._late.cancel()

    # The world.

    def _start(self) -> None:
        common_secret.forget(self._spec.layout)
        seconds = self._spec.world_timeout
        self._late = self._loop.after(seconds, lambda: self.report(self._run.verdict_on_late_ranks(seconds)))
        if self._run.step is not None:
            self._run.announce(self._events, len(self._spec.steps))
        if self._run.mpirun is not None and isinstance(self._spec.world, MpiWorld):
            # It runs, and waited for the last of its daemons only.
            command = self._spec.world.shown(self._run.mpirun.command)
            self._events.emit(WorldStarting(self._spec.world.hosts, self._spec.world.size, command))
            return
        endpoints = [self._endpoints[host] for host in self._spec.hosts]
        if self._spec.world is not None:
            self._events.emit(WorldStarting(self._spec.world.hosts, self._spec.world.size, endpoints=endpoints))
        self._broadcast("go", *endpoints)
        self._host.start_ranks(endpoints)

    def _start_mpirun(self, world: MpiWorld) -> None:
        """It starts the ranks when it has its daemons: each one as soon as its host is ready."""
        from .mpirun import Mpirun  # other worlds have no need of it

        self._run.mpirun = Mpirun(self._spec, self._host.toolkit, world, self._run.ready, self._ask_for_daemon)
        try:
            self._run.mpirun.start(self._mpirun_ended, is_first=self._run.number == 0)
        except ConfigurationError as error:
            self.report(Verdict(Kind.MPI, f"{self._spec.name}: {error}", host=self._spec.name))

    def _ask_for_daemon(self, host: str, node: str, request: str) -> None:
        if self._mesh is not None:
            self._mesh.send(host, "daemon", node, request)

    # The end.

    def _rank_ended(self, host: str, ended: Ended) -> None:
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
        elif self._run.all_ended_well:
            self._step_done()
        elif ended.code == 0 and self._run.step is not None and ended.rank < SPAWNED:
            self._late_ranks.begin(self._run.step.name, self._run.late)

    def _report_rank(self, found: Verdict) -> None:
        """Ranks that reach each other by themselves see that one is gone before its own wrapper can have said so."""
        if self._run.mpirun is None and found.blames_another:
            self._loop.after(CULPRIT_SECONDS, lambda: self.report(found))
        else:
            self.report(found)

    def _step_done(self) -> None:
        """Every rank has ended its step: end the job after the last one, else begin the next without a trace of it."""
        self._late_ranks.end()
        if self._run.number + 1 >= len(self._spec.steps):
            self._end(Outcome("completed"))
        elif self._run.mpirun is None or not self._run.mpirun.runs:
            self._next_step()

    def _next_step(self) -> None:
        self._late.cancel()
        self._run.close()
        self._run = StepRun.of(self._spec, self._run.number + 1)
        self._late = self._loop.after(self._spec.world_timeout, self._too_late)
        self._broadcast("step_over")
        self._host.step_over()

    def _told_by_mpirun(self, run: StepRun) -> None:
        """mpirun ends the ranks though none has failed: one has left without MPI_Finalize. It says so seconds later."""
        found = run.verdict_on_leaver()
        if found is not None and run is self._run and self._host.outcome is None and not self._host.stopping:
            self.report(found)

    def _stand(self, host: str, stacks: dict[int, str] | None) -> None:
        """When all ranks that have not ended stand still, none will ever move."""
        self._run.standing[host] = stacks or {}
        found = self._run.verdict_on_standstill(self._spec.hang_timeout)
        if found is not None:
            self.report(found)

    def stalled(self, stall: Stall) -> None:
        """Horovod on a rank of some host says whom it waits for."""
        self._run.stalled(stall)
        self._broadcast("stalled", stall.to_json())
        self._host.stalled(stall)

    def _mpirun_ended(self, code: int) -> None:
        if self._run.all_ended_well and self._host.outcome is None and not self._host.stopping:
            self._step_done()
        elif code < 0:
            # Ranks that lose it exit with an error of their own, so nobody is asked first.
            self._without_reports(code)
        else:
            wait = LAST_REPORTS_SECONDS if code == 0 else CULPRIT_SECONDS
            self._run.without_reports = self._loop.after(wait, lambda: self._without_reports(code))

    def _without_reports(self, code: int) -> None:
        """mpirun is gone, and no rank has said that it failed."""
        assert self._run.mpirun is not None
        words = self._run.mpirun.last_words()
        if self._host.stopping:
            self._end(Outcome("stopped"))
        else:
            self.report(self._run.verdict_on_mpirun(self._spec.name, code, words))

    def _end(self, outcome: Outcome) -> None:
        if self._host.outcome is None:
            self._host.end(outcome)
            self._broadcast("end", *outcome.to_fields())

    def _broadcast(self, *fields: str) -> None:
        if self._mesh is not None:
            self._mesh.broadcast(*fields)
