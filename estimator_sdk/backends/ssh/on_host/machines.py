"""The machines of a job's pool, as its supervisor knows them: the keepers that have come, and what each is used for."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from estimator_container.contract.names import Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.logs.events import EventLog
from estimator_container.logs.frames import FrameWriter
from estimator_container.mesh.mesh import Member, MeshLeader
from estimator_container.mesh.pulse import Loss
from estimator_container.runtime.loop import Loop

from ....plan.plan import Plan
from ....values.home import JobFolder, write_private
from ...supervised.supervisor.hosts import NotStarted
from ...supervised.supervisor.hosts_line import MISSED_BEATS
from ..files import waiting_file
from . import words
from .copying.trees import Outbox
from .facts import own_home
from .room.claims import Claims, terms_of

JOIN_SECONDS = 60.0
"""That keepers may take to come, which the client starts one after the other."""
DID_NOT_CONNECT = "did not connect to the job's supervisor at {}"
NO_FIREWALL = "see that no firewall is between the machines"
NO_LOOPBACK = "on every machine that is the machine itself; name the first one in `hosts` by its address in the network"


class PoolMachine(NamedTuple):
    """A machine of the pool, as the client knows it."""

    name: str
    """In the mesh."""
    at: str
    """As the user has written it."""


class KeeperObserver(Protocol):
    """What is told of keepers: of each that has come, by its machine's name."""

    def keeper_says(self, machine: str, kind: str, fields: list[str]) -> None:
        """It has sent a message."""

    def keeper_lost(self, machine: str, how: Loss) -> None:
        """It is gone, and its host with it."""


class AgentObserver(Protocol):
    """What is told of the agent that a keeper runs."""

    def agent_says(self, machine: str, kind: str, fields: list[str]) -> None:
        """It, or its keeper, has sent a message."""

    def machine_lost(self, machine: str) -> None:
        """It is gone, if it was there."""


@dataclass
class KeptMachine:
    """A machine whose keeper has come."""

    address: str
    """By which other machines reach it."""
    boot: str
    """What tells it from others, if it is not empty."""
    home: str
    """As its `facts.own_home` says; empty where that is not known."""
    outbox: Outbox
    uses: list[str] = field(default_factory=list)
    """The hosts that have run there."""


class PoolMachines:
    """All machines of the pool, over all attempts. See `MeshObserver` for what their keepers say."""

    def __init__(
        self, loop: Loop, machines: list[PoolMachine], secret: bytes, door: socket.socket, supervisor_at: str | None
    ) -> None:
        """`supervisor_at` is what the user calls this machine; None where it is the first one of the pool."""
        self.secret = secret
        self.own = machines[0].name if supervisor_at is None else None
        """The machine of the pool that this process runs on, if it runs on one."""
        self.supervisor_at = machines[0].at if supervisor_at is None else supervisor_at
        """What the user calls the machine that this process runs on."""
        self.home = own_home()
        """Where this machine has the user's jobs: those of machines that say the same share the folder."""
        self.machines = machines
        self.kept: dict[str, KeptMachine] = {}
        """Those that are there, by their names."""
        self.lost: set[str] = set()
        self._unfit: dict[str, str] = {}
        """Machine -> why it cannot have a host."""
        self._told: set[str] = set()
        """Those of them that the end of an attempt has named."""
        self.claims: Claims | None = None
        """Those of the job on the slots of the machines, once it has some."""
        self.observer: KeeperObserver | None = None
        """Who hears of them at the moment."""
        self.agent: AgentObserver | None = None
        """The same of an agent."""
        self._loop = loop
        member = Member(words.SUPERVISOR, tuple(machine.name for machine in machines), secret)
        self.address: str = door.getsockname()[0]
        self._mesh = MeshLeader(loop, member, self, door, MISSED_BEATS)

    @classmethod
    def inherited(cls, loop: Loop) -> PoolMachines:
        """As the client has left them to this process."""
        door, settings = map(int, os.environ.pop(words.POOL_VARIABLE).split(","))
        os.set_inheritable(door, False)
        os.lseek(settings, 0, os.SEEK_SET)
        with os.fdopen(settings, "rb") as file:
            given = json.load(file)
        machines = [PoolMachine(**each) for each in given["machines"]]
        secret, sock = bytes.fromhex(given["secret"]), socket.socket(fileno=door)
        return cls(loop, machines, secret, sock, given.get("supervisor_at"))

    def loss_of(self, host: str, machine: str, how: Loss) -> Verdict:
        """Why a host is lost whose keeper is, on that machine."""
        if how in (Loss.UNHEARD, Loss.STOOD_STILL):
            of_this = f"the job's supervisor on {self.supervisor_at}, which stood still or was cut off"
            return Verdict(Kind.PLATFORM, f"{self.at(machine)} heard nothing from {of_this}, and ended {host}")
        return Verdict(Kind.HOST_LOST, f"{host} is lost: {self.at(machine)} is not connected any more", host)

    def at(self, name: str) -> str:
        """How the user calls a machine."""
        return next(machine.at for machine in self.machines if machine.name == name)

    def enter(self, plan: Plan, folder: JobFolder, is_over: Callable[[], bool]) -> None:
        """Wait for as many machines as the plan has hosts, and for room on them if the job is to. Raises NotStarted.

        A spare machine takes the place of one that cannot have a host, does not come, or is lost meanwhile, and the log
        says so. It returns early once `is_over` is true. On a pool of which this machine is none, who has started the
        keepers has the slots.
        """
        count = len(plan.hosts)
        self._wait_for(count, is_over)
        if self.own is None:
            return
        if self.claims is None:
            terms = terms_of(plan, [machine.name for machine in self.machines])
            self.claims = Claims(self._loop, self.send, self.at, terms)
        waiting, waits, before = waiting_file(folder), bool(plan.decoded.reserved.queue), ""
        held: list[str] = []
        try:
            while not (before or held or is_over()):
                kept = [machine.name for machine in self.machines if machine.name in self.kept]
                before = self.claims.hold(kept[:count], waits, is_over, lambda who: write_private(waiting, who))
                held = kept if self.kept.keys() >= {*kept[:count]} else []
                if not held:
                    self._wait_for(count, is_over)
        finally:
            with contextlib.suppress(FileNotFoundError):
                waiting.unlink()
        if before:
            hint = "use queue=True to wait for them, other machines, or fewer processes_per_host"
            raise NotStarted(Verdict(Kind.PLATFORM, f"the machines have no room: {before}; {hint}"))
        for spare in held[count:]:
            self.use(spare)
        if held and self.lost and not is_over():
            self._say(folder.host(plan.hosts[0].name))

    def _say(self, first: Path) -> None:
        """Name the machines that are lost in the first host's log."""
        with contextlib.suppress(OSError), contextlib.closing(FrameWriter(Layout(str(first)).frames)) as frames:
            for why in self._why_lost:
                EventLog(frames).say(f"{why}; the job goes on without it")

    def _wait_for(self, count: int, is_over: Callable[[], bool]) -> None:
        """Wait until so many machines, of those that are not lost the first, are there. Raises NotStarted.

        It returns early once `is_over` is true.
        """

        def missing() -> list[str]:
            wanted = [machine.name for machine in self.machines if machine.name not in self.lost][:count]
            return [name for name in wanted if name not in self.kept]

        self._loop.run_until(lambda: is_over() or not missing(), JOIN_SECONDS)
        hint = NO_LOOPBACK if self.own is not None and self.address.startswith("127.") else NO_FIREWALL
        what = f"{DID_NOT_CONNECT.format(self.address)}; {hint}"
        are_enough = not is_over() and len(self.kept.keys() - self.lost) >= count
        while (late := missing()) and are_enough and self.own not in late:
            self._unfit.update(dict.fromkeys(late, f"it {what}"))
            self.lost.update(late)
        why = self._why_unfit
        if why and self.too_few(count):
            why = self._why_lost
        elif missing() and not is_over():
            why.append(f"{', '.join(map(self.at, missing()))} {what}")
        else:
            return
        self._told.update(self._unfit)
        raise NotStarted(Verdict(Kind.PLATFORM, "; ".join(why)))

    def too_few(self, hosts: int) -> str:
        """Why there can be no machine for each of so many hosts, in words; empty where there can."""
        if self.own in self.lost:
            return f"no other machine can take the place of the first, {self.machines[0].at}; {self.hint}"
        left = len(self.machines) - len(self.lost)
        gone = [each.at for each in self.machines if each.name in self.lost - (self._unfit.keys() - self._told)]
        without = f" without {', '.join(gone)}" if gone else ""
        what = f"too few machines are left, {left} of {len(self.machines)}{without}"
        return "; ".join((what, *self._why_unfit, self.hint)) if left < hosts else ""

    @property
    def hint(self) -> str:
        """What to do where machines are lost."""
        cannot_be_replaced = self.own is None or self.own in self.lost
        return "start the job again" if cannot_be_replaced else "give the pool more machines, and spare_hosts="

    @property
    def _why_unfit(self) -> list[str]:
        return [self._why(name) for name in self._unfit if name not in self._told]

    @property
    def _why_lost(self) -> list[str]:
        gone = (each.name for each in self.machines if each.name in self.lost - self._unfit.keys())
        return [self._why(name) for name in (*self._unfit, *gone)]

    def _why(self, name: str) -> str:
        unfit = self._unfit.get(name)
        return f"{self.at(name)} {f'cannot have a host: {unfit}' if unfit else 'is not connected any more'}"

    def free(self, taken: Container[str], for_own: bool) -> str | None:
        """One that is there and not taken: this one, or another. None if there is none."""
        names = (each.name for each in self.machines if each.name in self.kept)
        return next((name for name in names if (name == self.own) == for_own and name not in taken), None)

    def send(self, machine: str, *fields: str) -> None:
        """Send a message to a keeper; nothing happens if it is not there."""
        self._mesh.send(machine, *fields)

    def use(self, machine: str) -> None:
        """A host is about to run there: hold the lease, if it is on none of those that were waited for."""
        if self.claims is not None:
            self.claims.take(machine)

    def close(self) -> None:
        """Have all keepers end."""
        for name in self.kept:
            self.send(name, words.LEAVE)
        self._loop.run_until(lambda: not self.kept, JOIN_SECONDS)
        self._mesh.close()

    # What keepers say.

    def on_joined(self, host: str) -> None:
        """It says next what it is."""
        self._mesh.begin_to_beat()

    def on_message(self, host: str, message: list[str]) -> None:
        kind, *fields = message
        if kind == words.ABOUT and host in self.lost:  # another has its place
            self.send(host, words.LEAVE)
        elif kind == words.ABOUT:
            address, boot, home = fields
            outbox = Outbox(lambda *item: self.send(host, words.ITEM, *item))
            self.kept[host] = KeptMachine(address, boot, home, outbox)
        elif kind == words.UNFIT:
            self._unfit[host] = fields[0]
            self.lost.add(host)
            self.send(host, words.LEAVE)
        elif kind == words.ROOM and self.claims is not None:
            self.claims.hear(host, *fields)
        elif kind == words.TAKEN:
            self.kept[host].outbox.taken()
        elif kind in (words.AGENT_SAYS, words.AGENT_ENDED):
            if self.agent is not None:
                self.agent.agent_says(host, kind, fields)
        elif self.observer is not None:
            self.observer.keeper_says(host, kind, fields)

    def on_lost(self, host: str, how: Loss) -> None:
        """Its host has ended: a keeper that finds no supervisor any more sees to that."""
        self.kept.pop(host, None)
        self.lost.add(host)
        if self.claims is not None:
            self.claims.lost(host)
        if self.agent is not None:
            self.agent.machine_lost(host)
        if self.observer is not None:
            self.observer.keeper_lost(host, how)
