"""The hosts of a job on a pool, for its supervisor: each is kept by a program on a machine of its own.

Where the supervisor's own machine is one of the pool, it has the first host, whose files are where those of all jobs
with a supervisor are. Of all others it has copies: what they need is sent there before they start, what they write
comes back.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial

from estimator_container.contract import names as contract
from estimator_container.contract.names import Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.mesh.pulse import Loss
from estimator_container.runtime.children import Children
from estimator_container.runtime.loop import Loop

from ....plan.plan import HostPlan, Plan
from ....values.home import JobFolder, home, make_folder
from ...supervised.agents.agent_process import StartAgent
from ...supervised.supervisor.hosts import NotStarted, OnHostEnded
from ...supervised.supervisor.hosts_line import HostsLine, OnAttemptFailed
from ...supervised.supervisor.policy import variables_of_attempt
from ...supervised.supervisor.toolkits import Toolkits
from . import words
from .copying.arriving import ArrivingFiles, end_of, remove_secrets, write_inputs
from .copying.trees import tree
from .copying.windows import WindowRequests
from .machines import PoolMachines
from .publishing import AgentElsewhere

END_SECONDS = 15.0
"""That a keeper may take to say that a host is over which was killed, and to send what it has left."""
PUBLISH_SECONDS = 900.0
"""That the agent may take to publish what an attempt has left."""


class SshHosts:
    """The hosts of one allocation. See `KeeperObserver` for what is heard of them."""

    def __init__(
        self,
        machines: PoolMachines,
        plan: Plan,
        folder: JobFolder,
        attempt: int,
        loop: Loop,
        children: Children,
        on_ended: OnHostEnded,
    ) -> None:
        self._machines = machines
        self._plan = plan
        self._folder = folder
        self._attempt = attempt
        self._loop = loop
        self._on_ended = on_ended
        self._names = tuple(host.name for host in plan.hosts)
        self._secret = os.urandom(contract.SECRET_BYTES)
        self._toolkits = Toolkits(loop, self._names, self._secret)
        self._toolkits.listen(machines.address)
        self._toolkits.before_failed = self._flush
        self._toolkits.prepare_again = self._bring_checkpoints
        self._machine_of: dict[str, str] = {}
        """Host -> the machine that it runs on, or has run on."""
        self._running: set[str] = set()
        self._flushes: list[tuple[set[str], Callable[[], None]]] = []  # who has to send yet, and what is done then
        self._is_stopping = False
        self._arriving = ArrivingFiles(loop, folder, self._tell, self._not_kept)
        self._windows = WindowRequests(loop, lambda host, request: self._tell(host, words.WINDOW, request))
        self._agent = AgentElsewhere(loop, machines.send)
        machines.observer, machines.agent = self, self._agent

    @property
    def too_few_machines(self) -> str:
        return self._machines.too_few(len(self._names))

    @property
    def starts_agent(self) -> StartAgent | None:
        """What has the checkpoints published where the first host is; None where that is here."""
        return self._agent.start if self._machines.own is None else None

    @property
    def first_host_at(self) -> str:
        return self._toolkits.first_host_at

    def line_to(self, host: str, on_failed: OnAttemptFailed, on_silence: Callable[[], None]) -> HostsLine:
        return self._toolkits.line_to(host, on_failed, on_silence)

    def wait_for_machines(self) -> None:
        self._machines.enter(self._plan, self._folder, lambda: self._is_stopping or bool(self.too_few_machines))

    def start(self) -> None:
        for host in self._names:
            self._machine_of[host] = self._free_machine(host)
        for planned in self._plan.hosts:
            self._start_host(planned, self._attempt)

    def end(self, host: str) -> None:
        if host in self._running:
            self._arriving.hasten((host,))
            self._tell(host, words.KILL)
            self._loop.run_until(lambda: host not in self._running, END_SECONDS)
            if host in self._running:  # its machine says nothing any more
                self._ended(host, -signal.SIGKILL)

    def start_again(self, host: str, attempt: int, first_host_at: str) -> None:
        self._toolkits.expect(host, first_host_at)
        if self._machine_of[host] not in self._machines.kept:
            self._machine_of[host] = self._free_machine(host)
        self._arriving.forget(host)
        (again,) = (each for each in self._plan.hosts if each.name == host)
        self._start_host(again, attempt)

    def signal(self, signum: int) -> None:
        if signum == signal.SIGKILL:
            for host in self._running:
                self._tell(host, words.KILL)
        else:
            self._is_stopping = True
            self._arriving.hasten(self._names)
            self._toolkits.stop()

    def close(self) -> None:
        self._arriving.hasten(self._names)
        for host in tuple(self._running):
            self._tell(host, words.KILL)
        self._loop.run_until(lambda: not self._running, END_SECONDS)
        self._toolkits.close()
        self._windows.close()
        if not self._agent.has_owner:
            self._machines.observer = None

    def wait_until_gone(self) -> None:
        """`close` leaves nothing to wait for; what keepers have, they remove when they end."""

    def _tell(self, host: str, *fields: str) -> None:
        self._machines.send(self._machine_of[host], *fields)

    def _is_here(self, host: str) -> bool:
        """Whether it has its files in the job's folder itself."""
        return self._machines.own is not None and host == self._names[0]

    def _free_machine(self, host: str) -> str:
        """One that no host runs on; the supervisor's own is the first host's. Raises NotStarted."""
        taken = {self._machine_of[other] for other in self._machine_of if other != host}
        found = self._machines.free(taken, self._is_here(host))
        if found is None:
            raise NotStarted(Verdict(Kind.HOST_LOST, f"no machine is left for {host}; {self._machines.hint}", host))
        return found

    # How they are started.

    def _start_host(self, host: HostPlan, attempt: int) -> None:
        base = self._folder.hosts / host.base_dir
        layout, name = Layout(str(base)), self._machine_of[host.name]
        kept = self._machines.kept[name]
        kept.uses.append(host.name)
        write_inputs(self._plan, self._folder, host.name, layout, kept.address, self._secret)
        make_folder(self._folder.attempt(self._attempt))
        self._machines.use(name)
        own = str(base) if self._is_here(host.name) else None
        log = str(self._folder.attempt(self._attempt) / f"{host.name}.log")
        variables, plan = self._environment(host, attempt), self._plan
        settings = words.RunSettings(host.argv, own, log, variables, plan.image, plan.image_words)
        self._running.add(host.name)

        def run() -> None:
            self._tell(host.name, words.RUN, json.dumps(settings._asdict()))
            self._toolkits.started(host.name)

        def begin() -> None:
            remove_secrets(layout)
            self._with_agent(host.name, run)

        if self._is_here(host.name):
            run()
            return
        self._windows.watch(host.name, layout)
        for each in ("input", "checkpoints", "output", "model", "code"):
            self._tell(host.name, words.CLEAR, each)
        common = str(home()) if kept.home == self._machines.home else ""
        kept.outbox.put(tree(str(base), ("input",), follow=True, common=common))
        kept.outbox.put(tree(str(base), ("checkpoints",)), begin)

    def _environment(self, host: HostPlan, attempt: int) -> dict[str, str]:
        kept = {name: self._machines.kept[self._machine_of[name]] for name in self._names if self._is_kept(name)}
        shared = Counter(each.boot or name for name, each in kept.items())
        return {
            **host.environment,
            contract.HOSTS_PER_MACHINE: str(shared[kept[host.name].boot or host.name]),
            contract.HOST_ADDRESSES: json.dumps({name: each.address for name, each in kept.items()}),
            contract.PLATFORM_ADDRESS: self._toolkits.address,
            contract.STOP_TIMEOUT: str(self._plan.stop_timeout),
            contract.JOB_NAME_VARIABLE: self._plan.job_name,
            **variables_of_attempt(self._plan, attempt),
        }

    def _is_kept(self, host: str) -> bool:
        return self._machine_of.get(host) in self._machines.kept

    def keeper_says(self, machine: str, kind: str, fields: list[str]) -> None:
        host = next((each for each, used in self._machine_of.items() if used == machine), None)
        if host is None:
            return
        if kind == words.ITEM:
            self._arriving.take(host, fields)
        elif kind == words.ENDED and host in self._running:
            self._ended(host, *end_of(host, *fields))
        elif kind == words.NOT_RUN and host in self._running:
            what = f"{host} could not be started on {self._machines.at(machine)}: {fields[0]}"
            self._ended(host, contract.EXIT_FRAMEWORK_ERROR, Verdict(Kind.PLATFORM, what, host))
        elif kind == words.FLUSHED:
            self._flushed(host)

    def keeper_lost(self, machine: str, how: Loss) -> None:
        for host, used in self._machine_of.items():
            if used == machine:
                self._arriving.forget(host)
                for unflushed, _ in self._flushes:
                    unflushed.discard(host)
                self._go_on_if_flushed()
                if host in self._running:
                    self._ended(host, -signal.SIGKILL, self._machines.loss_of(host, machine, how))

    def _not_kept(self, host: str, error: Exception) -> None:
        """What cannot be written here ends the host, for its outputs would not be whole."""
        supervisor = self._machines.supervisor_at
        self._fail(host, Kind.OUTPUTS, f"what {host} has written cannot be kept on {supervisor}: {error}")

    def _fail(self, host: str, kind: Kind, what: str) -> None:
        self._tell(host, words.KILL)
        if host in self._running:
            self._ended(host, contract.EXIT_FRAMEWORK_ERROR, Verdict(kind, what, host))

    def _ended(self, host: str, code: int, found: Verdict | None = None) -> None:
        self._running.discard(host)
        self._toolkits.ended(host)
        self._on_ended(host, code, found)

    # Between two attempts on the same hosts.

    def _flush(self, then: Callable[[], None]) -> None:
        """Have the others send what they have written, for that is set aside next, once the agent needs it no more."""
        self._agent.finish_then(PUBLISH_SECONDS, lambda: self._flush_hosts(then))

    def _flush_hosts(self, then: Callable[[], None]) -> None:
        unflushed = {host for host in self._running if not self._is_here(host) and self._is_kept(host)}
        self._flushes.append((unflushed, then))
        for host in unflushed:
            self._tell(host, words.FLUSH)
        self._go_on_if_flushed()

    def _flushed(self, host: str) -> None:
        """It has answered the first that it was asked for, and has not answered yet."""
        for unflushed, _ in self._flushes:
            if host in unflushed:
                unflushed.remove(host)
                break
        self._go_on_if_flushed()

    def _go_on_if_flushed(self) -> None:
        while self._flushes and not self._flushes[0][0]:
            _, then = self._flushes.pop(0)
            then()

    def _bring_checkpoints(self, host: str) -> None:
        """What was restored. The first host is told before all others, or they alone where it is made anew."""
        if self._plan.checkpoint_uri is None:
            return
        told = self._running if host == self._names[0] else (host,)
        waiting = {each for each in told if not self._is_here(each) and self._is_kept(each)}
        for each in tuple(waiting):
            self._tell(each, words.CLEAR, "checkpoints")
            items = tree(str(self._folder.host(each)), ("checkpoints",))
            self._machines.kept[self._machine_of[each]].outbox.put(items, partial(waiting.discard, each))
        self._loop.run_until(lambda: not {each for each in waiting & self._running if self._is_kept(each)})
        begun: list[bool] = []
        self._with_agent(host, lambda: begun.append(True))
        self._loop.run_until(lambda: bool(begun) or host not in self._running)

    def _with_agent(self, host: str, then: Callable[[], None]) -> None:
        """Call `then` once the checkpoints of a host that has not ended are published from now on, if that is asked."""

        def begun(why: str | None) -> None:
            if why is not None:
                self._fail(host, Kind.CHECKPOINTS, f"the checkpoints of {host} could not be kept: {why}")
            elif host in self._running:
                then()

        if host == self._names[0] and host in self._running:  # or what was restored in part would be published
            self._agent.begin(self._machine_of[host], begun)
        else:
            begun(None)
