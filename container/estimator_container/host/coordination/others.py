"""The other hosts of a job, as the first one has them: what they are told, and what is made of what they say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from ...contract.events import HostJoined
from ...failures.lost_hosts import LostHosts
from ...failures.verdict import Verdict
from ...mesh.endpoint import another_listening_socket, listening_socket, text_of
from ...ranks.server import RankEnd

if TYPE_CHECKING:
    from ...failures.hangs.standing import StandingRank
    from ...failures.horovod_stalls import Stall
    from ...mesh import mesh
    from ...mesh.clocks import ClockOffsets
    from ...mesh.pulse import Loss
    from ...training.page import StepCount
    from ..spec import HostSpec
    from ..toolkit import Toolkit
    from .platform_line import PlatformLine


class HostsListener(Protocol):
    """Who hears what happens on the other hosts."""

    @property
    def is_ending_attempt(self) -> bool:
        """Whether what hosts say of their ranks is of an attempt that is being ended on all of them."""

    def host_ready(self, host: str, endpoint: str) -> None:
        """It can run the next step; a rank of it may listen at the endpoint."""

    def host_started(self, host: str, step: int) -> None:
        """All its ranks run the step of that number."""

    def host_spawned(self, host: str, rank: int) -> None:
        """A rank of it runs that another one has started."""

    def host_rank_ended(self, host: str, ended: RankEnd) -> None:
        """A rank of it has."""

    def host_stands(self, host: str, standing: dict[int, StandingRank] | None, seconds: float) -> None:
        """All its ranks have stood still for so many seconds, or with None do so no longer."""

    def host_bound_learnt(self, host: str, seconds: float) -> None:
        """By what they have written, they may be silent for so long."""

    def host_cleared(self, host: str) -> None:
        """Nothing of the attempt is left there."""

    def host_lost(self, host: str, how: Loss) -> None:
        """The connection to it has ended."""

    def daemon_answered(self, host: str, outcome: str) -> None:
        """It has started the MPI daemon that it was asked for, or says why not."""

    def weights_seen(self, look: list[str]) -> None:
        """A rank has sent some of its weights."""

    def steps_seen(self, counts: Sequence[StepCount]) -> None:
        """Ranks of a host have made these training steps so far."""

    def stalled(self, stall: Stall) -> None:
        """Horovod on a rank says whom it waits for."""

    def report(self, found: Verdict) -> None:
        """Something failed there."""

    def told_to_stop(self) -> None:
        """It was told to stop, so all are to."""


class Others:
    """All hosts of a job but the first; there may be none."""

    def __init__(self, spec: HostSpec, toolkit: Toolkit, listener: HostsListener) -> None:
        self._spec = spec
        self._toolkit = toolkit
        self._listener = listener
        self._mesh: mesh.MeshLeader | None = None
        self._early: list[tuple[str, list[str]]] = []
        """Who is ready for the next attempt before the platform has said that there is one."""
        self.on_answer: Callable[[str], None] = lambda host: None
        """Called with a host that was asked whether it is there, and is."""
        self._lost = LostHosts(toolkit.loop, spec.name, spec.hosts[1:], spec.missed_beats, listener.report)
        self._clocks: ClockOffsets | None = None

    def open(self, platform: PlatformLine | None) -> None:
        """Let them join; a platform elsewhere tells them where. Raises ConfigurationError or OSError."""
        if len(self._spec.hosts) == 1:
            return
        from ...mesh import mesh  # a single host has none

        member = mesh.Member(self._spec.name, self._spec.hosts[1:], self._spec.required_secret())
        if platform is not None and platform.is_elsewhere:
            sock = another_listening_socket(self._spec.cluster)
            platform.listens_at(text_of(sock))
        else:
            sock = listening_socket(self._spec.settings.listen_fd)
        self._mesh = mesh.MeshLeader(self._toolkit.loop, member, self, sock, self._spec.missed_beats)

    def begin_to_beat(self) -> None:
        """From now on this host answers to nothing that could hold it up for long."""
        if self._mesh is not None:
            self._mesh.begin_to_beat()
            self._lost.learn(self._spec.cluster.is_on_loopback)

    @property
    def missing(self) -> list[str]:
        """Those that have not joined, in their order."""
        return self._mesh.missing if self._mesh is not None else []

    def tell(self, *fields: str) -> None:
        """Send a message to each of them."""
        if self._mesh is not None:
            self._mesh.broadcast(*fields)

    def ask_for_daemon(self, host: str, node: str, request: str) -> None:
        """Have one start an MPI daemon that goes by the name of a node."""
        if self._mesh is not None:
            self._mesh.send(host, "daemon", node, request)

    def ask_whether_there(self, host: str) -> None:
        """Have one say that it is: `on_answer` is called then."""
        if self._mesh is not None:
            self._mesh.send(host, "are_you_there")

    def compare_clocks(self) -> None:
        """Find out how far theirs are from that of this host; `Layout.clocks` has it then."""
        mesh = self._mesh
        if mesh is not None:
            from ...mesh.clocks import ClockOffsets  # hardly any job is asked for a timeline

            joined = [host for host in self._spec.hosts[1:] if host not in mesh.missing]
            path = self._spec.layout.clocks
            self._clocks = ClockOffsets(joined, path, lambda host, asked: mesh.send(host, "clock", asked))
            self._clocks.begin()

    def expect(self, hosts: Collection[str]) -> str:
        """Let others join in the place of lost hosts. Returns the address at which. Raises OSError."""
        assert self._mesh is not None
        sock = another_listening_socket(self._spec.cluster)
        self._mesh.expect(hosts, sock)
        for host in hosts:
            self._lost.forget(host)
        return text_of(sock)

    def begin_again(self) -> None:
        """Another attempt begins: hear who is ready for it already."""
        early, self._early = self._early, []
        for host, message in early:
            self.on_message(host, message)

    @property
    def apart(self) -> Collection[str]:
        """Those that may be there, and have no connection to this host any more."""
        return self._lost.apart

    def blame_for(self, host: str, how: Loss) -> None:
        """Find out who is to blame that the connection to a host has ended, and report it."""
        self._lost.lose(host, how)

    def close(self) -> None:
        """Hear and tell nothing more."""
        if self._mesh is not None:
            self._mesh.close()

    # As `MeshObserver` has it.

    def on_joined(self, host: str) -> None:
        self._toolkit.events.emit(HostJoined(host))

    def on_lost(self, host: str, how: Loss) -> None:
        self._listener.host_lost(host, how)

    def on_message(self, host: str, message: list[str]) -> None:
        kind, *fields = message
        listener = self._listener
        if kind == "stop":
            listener.told_to_stop()
        elif kind == "cleared":
            listener.host_cleared(host)
        elif listener.is_ending_attempt:
            if kind == "ready":
                self._early.append((host, message))
        elif kind == "ready":
            listener.host_ready(host, fields[0])
        elif kind == "clock":
            if self._clocks is not None:
                self._clocks.answered(host, *fields)
        elif kind == "here":
            self.on_answer(host)
        elif kind == "ranks_started":
            listener.host_started(host, int(fields[0]))
        elif kind == "failed":
            self._toolkit.children.reap_ending()  # it may have failed because mpirun is gone
            listener.report(Verdict.from_json(fields[0]))
        elif kind == "spawned":
            listener.host_spawned(host, int(fields[0]))
        elif kind == "rank_ended":
            listener.host_rank_ended(host, RankEnd.from_fields(*fields))
        elif kind == "stand":
            from ...failures.hangs.standing import StandingRank  # only where ranks do

            seconds, *standing = fields
            ranks = (each.partition(" ") for each in standing)
            found = {int(rank): StandingRank.from_json(text) for rank, _, text in ranks}
            listener.host_stands(host, found or None, float(seconds))
        elif kind == "bound":
            listener.host_bound_learnt(host, float(fields[0]))
        elif kind == "weights":
            listener.weights_seen(fields)
        elif kind == "steps":
            from ...training.page import StepCount  # hardly any job trains in the first second

            listener.steps_seen([StepCount.from_field(field) for field in fields])
        elif kind == "stalled":
            from ...failures.horovod_stalls import Stall  # only where Horovod has said so

            listener.stalled(Stall.from_json(fields[0]))
        elif kind == "daemon":
            listener.daemon_answered(host, fields[0])
