"""mpirun on the first host: it starts the ranks of a step when each other host has its daemon."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection

from ...logs.events import ProgramOutput
from ...mesh.endpoint import interface_of
from ...ranks import spawned
from ...ranks.server import WRAPPER
from ...runtime import machine
from ...runtime.children import OnExit
from ...worlds.mpi import command_line, fabric, mpirun_words, programs
from ...worlds.mpi.launch_agents import STARTED, LaunchAgents
from ...worlds.mpi.world import MpiWorld
from ..commands import environment_of_programs
from ..spec import HostSpec
from ..toolkit import Toolkit

Ask = Callable[[str, str, str], None]
"""Asks a host for a daemon: by what name it is to go, and the command that mpirun has for it."""


class Mpirun:
    """One mpirun, its launch agents, and the daemons that it wants."""

    def __init__(self, spec: HostSpec, toolkit: Toolkit, world: MpiWorld, ready: Collection[str], ask: Ask) -> None:
        """`ready` are the hosts that can start a daemon, and grows."""
        self.command: list[str] = []
        """Without the program that it starts."""
        self.runs = False
        self.with_daemon: set[str] = set()
        """The other hosts on which it has a daemon."""
        self._spec = spec
        self._toolkit = toolkit
        self._world = world
        self._ready = ready
        self._ask = ask
        self._nodes = _node_names(world.hosts)
        self._requests: dict[str, tuple[str, str]] = {}
        """What it asks of hosts that are not ready yet: by what name to go, and the command of its daemon."""
        self._agents: LaunchAgents | None = None
        self._output: ProgramOutput | None = None

    def start(self, on_exit: OnExit, is_first: bool) -> None:
        """`is_first` says that the job has had none before. Raises ConfigurationError or OSError."""
        path = programs.find("mpirun")
        folder = os.path.join(self._toolkit.scratch, "agents")
        self._agents = LaunchAgents(self._toolkit.loop, folder, list(self._nodes)[1:], self._on_request)
        given = self._spec.settings.launch_variables
        self.command = command_line.mpirun(self._world, self._fit(), path, self._agents.path, given)
        if is_first:
            self._tell_what_is_left_out()
        env = {**environment_of_programs(self._spec, self._toolkit), **programs.relocation(path)}
        # By its bare name: called by a path, mpirun changes the search paths of the remote daemons.
        env["PATH"] = os.path.dirname(path) + os.pathsep + env.get("PATH", os.defpath)
        argv = ["/usr/bin/env", "mpirun", *self.command[1:], sys.executable, "-I", "-S", WRAPPER]

        def ended(code: int) -> None:
            self.runs = False
            on_exit(code)

        self._output = self._toolkit.start_program(argv, env, ended, mpirun_words.IDLE)
        self.runs = True

    def host_is_ready(self, host: str) -> None:
        """It may be asked for a daemon, if mpirun wants one there."""
        if host in self._ready and host in self._requests:
            self._ask(host, *self._requests.pop(host))

    def daemon_answered(self, host: str, outcome: str) -> None:
        """A host has started its daemon, or says why not."""
        if outcome == STARTED:
            self.with_daemon.add(host)
        if self._agents is not None:
            self._agents.answer(next(node for node, each in self._nodes.items() if each == host), outcome)

    def last_words(self) -> str:
        """What it has said; what it says from now on is heard no more."""
        return self._output.finish() if self._output is not None else ""

    def close(self) -> None:
        """Its agents are answered no more."""
        if self._agents is not None:
            self._agents.close()
            self._agents = None

    def _on_request(self, node: str, request: str) -> None:
        self._requests[self._nodes[node]] = (node, request)
        self.host_is_ready(self._nodes[node])

    def _tell_what_is_left_out(self) -> None:
        from ...worlds.mpi import inherited

        names = set(os.environ)
        if self._spec.settings.platform_address is not None:  # whose scheduler sets them, and not the user
            names = {name for name in names if not inherited.is_of_scheduler(name)}
        sentence = inherited.sentence(names, self._spec.settings.launch_variables)
        if sentence is not None:
            self._toolkit.events.say(sentence)

    def _fit(self) -> command_line.Fit:
        spec, scratch, cpus = self._spec, self._toolkit.scratch, machine.cpus()
        ranks = self._world.processes_per_host * spec.settings.hosts_per_machine
        return command_line.Fit(
            node_names=tuple(self._nodes),
            interface=interface_of(spec.cluster),
            scratch=scratch,
            crowded=ranks >= cpus,
            outnumbered=ranks > cpus and spec.settings.hosts_per_machine == len(spec.hosts),
            fabric=self._uses_fabric(),
            single_copy=machine.ranks_may_read_each_other(),
            ipv6_port=self._toolkit.ipv6_port,
            hostfile=spawned.write_hostfile(scratch, tuple(self._nodes)),
            spawns=len(self._world.hosts) == 1 and spawned.is_asked_for(spec.layout.code),
            fork_agent=spawned.fork_agent(scratch),
        )

    def _uses_fabric(self) -> bool:
        chosen, transport = self._spec.may_use_fabric, self._spec.settings.transport
        if chosen or transport is not None:
            self._toolkit.events.say(f"MPI between hosts: {fabric.sentence(transport)}")
        return chosen


def _node_names(hosts: tuple[str, ...]) -> dict[str, str]:
    """What MPI calls each host -> its name in the job; the first must go by its machine's name."""
    own = machine.name()
    return {own: hosts[0], **{f"{host}-host" if host == own else host: host for host in hosts[1:]}}
