"""What every host but the first does: joins the first one and does what it is asked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...contract.cluster import address_and_port
from ...contract.names import WORLD_PORT
from ...failures.kind import Kind
from ...failures.lost_hosts import LostHosts
from ...failures.outcome import Outcome
from ...failures.verdict import Verdict
from ...ranks.server import RankEnd
from ...runtime.errors import ConfigurationError
from ...worlds.mpi.launch_agents import STARTED
from .mpi_daemon import MpiDaemon

if TYPE_CHECKING:
    from ...failures.hangs.standing import StandingRank
    from ...failures.horovod_stalls import Stall
    from ...mesh import mesh
    from ...mesh.pulse import Loss
    from ...runtime.loop import Timer
    from ...training.page import StepCount
    from .port import HostPort
    from .rejoin import Rejoin

ANSWER_SECONDS = 5.0  # how long the first host may take to answer the report of a failure


class Follower:
    """Another host's part in the job: see `Coordinator` of the port, and `MeshObserver`."""

    def __init__(self, host: HostPort) -> None:
        self._host = host
        self._joined = False
        self._unsent: list[tuple[str, ...]] = []
        self._daemon: MpiDaemon | None = None
        self._is_prepared = False
        self._is_cleared = False
        self._is_ready = False
        self._rejoin: Rejoin | None = None
        """None for a job of one attempt, and on a platform that starts each attempt on hosts of its own."""
        self._unanswered: Timer | None = None
        self._place: tuple[str, int] | None = None
        """Where the first host listens, once that is known."""
        self._name = host.spec.name
        self._leader = host.spec.cluster.leader
        self._loop = host.toolkit.loop
        self._mesh: mesh.MeshWorker | None = None
        self._lost = LostHosts(self._loop, self._name, (self._leader,), host.spec.missed_beats, self._fail)

    def open(self) -> None:
        """Begin to look for the first host. Raises ConfigurationError when it could not be trusted, or OSError."""
        spec, line = self._host.spec, self._host.platform
        if line is not None and line.may_say_again:
            from .rejoin import Rejoin  # most jobs have one attempt

            self._rejoin = Rejoin(self._host, line, self._join_another)
        if line is not None and line.is_elsewhere:
            line.on_join = self._found
        else:
            self._place = spec.cluster.addresses.get(self._leader, (self._leader, WORLD_PORT))
        self._join()

    def _found(self, address: str) -> None:
        """Where the first host is, which may have another port by now."""
        self._place = address_and_port(address)

    def _find_leader(self) -> tuple[str, int]:
        if self._place is None:
            raise OSError("the platform has not said yet where the first host listens")
        return self._place

    def _join(self) -> None:
        from ...mesh import mesh  # a single host has none

        spec = self._host.spec
        self._mesh = mesh.MeshWorker(
            self._loop,
            mesh.Member(self._name, (self._leader,), spec.required_secret()),
            self,
            self._find_leader,
            time.monotonic() + spec.settings.world_timeout,
            spec.missed_beats,
        )
        self._mesh.begin_to_beat()
        self._lost.learn(spec.cluster.is_on_loopback)

    def _join_another(self, address: str) -> None:
        """Join another first host, to which nothing is said that the one before should have heard."""
        self._unsent.clear()
        self._is_cleared = False
        self._lost.forget(self._leader)
        self._found(address)
        self._join()

    def prepared(self) -> None:
        self._is_prepared = True

    def ready(self) -> None:
        """This host can run the next step, as soon as the MPI daemon of the one before is gone."""
        self._is_ready = True
        self._say_ready()

    def _say_ready(self) -> None:
        if self._is_ready and not (self._daemon is not None and self._daemon.runs):
            self._is_ready = False
            self._send("ready", self._host.endpoint)

    def ranks_started(self, step: int) -> None:
        self._send("ranks_started", str(step))

    def report(self, found: Verdict) -> None:
        """Something failed here: the first host decides; if it does not, this host ends by itself."""
        self._send("failed", found.to_json())
        self._expect_no_answer()
        self._unanswered = self._loop.after(ANSWER_SECONDS, lambda: self._host.end(Outcome("failed", found)))

    def _expect_no_answer(self) -> None:
        if self._unanswered is not None:
            self._unanswered.cancel()

    def spawned(self, rank: int) -> None:
        self._send("spawned", str(rank))

    def rank_ended(self, ended: RankEnd) -> None:
        if ended.code != 0:
            self._host.toolkit.children.reap_ending()  # it may have failed because the MPI daemon is gone
        self._send("rank_ended", *ended.to_fields())

    def ranks_stand(self, standing: dict[int, StandingRank] | None, seconds: float) -> None:
        self._send("stand", str(seconds), *(f"{rank} {each.to_json()}" for rank, each in (standing or {}).items()))

    def bound_learnt(self, seconds: float) -> None:
        self._send("bound", str(seconds))

    def weights_seen(self, look: list[str]) -> None:
        self._send("weights", *look)

    def steps_seen(self, counts: Sequence[StepCount]) -> None:
        self._send("steps", *(each.to_field() for each in counts))

    def stalled(self, stall: Stall) -> None:
        self._send("stalled", stall.to_json())

    def timeline_asked(self) -> None:
        """The first host compares the clocks."""

    def let_go(self) -> None:
        self._expect_no_answer()
        if self._daemon is not None:
            self._daemon.close()
            self._daemon = None

    def cleared(self) -> None:
        self._expect_no_answer()  # again: a rank may have been found to stand while the others ended
        self._is_cleared = True
        if self._rejoin is not None and self._rejoin.waits:
            self._rejoin.cleared()
        else:
            self._send("cleared")

    def stop(self) -> None:
        self._send("stop")
        if not self._joined:
            self._host.end(Outcome("stopped"))

    def close(self) -> None:
        if self._mesh is not None:
            self._mesh.close()

    def _send(self, *fields: str) -> None:
        if self._joined and self._mesh is not None:
            self._mesh.send(*fields)
        else:
            self._unsent.append(fields)

    def on_joined(self, leader: str) -> None:
        self._joined = True
        for fields in self._unsent:
            self._send(*fields)

    def on_lost(self, leader: str, how: Loss) -> None:
        if self._joined:
            self._lost.lose(leader, how)
        else:
            message = f"{self._name} could not reach {leader} within {self._host.spec.settings.world_timeout:g} s"
            if self._mesh is not None and self._mesh.met_another:
                message += "; the process at that address has a different secret, which the platform must write"
            self._fail(Verdict(Kind.HOST_MISSING, message, host=leader))

    def _fail(self, found: Verdict) -> None:
        if self._rejoin is None or not self._can_wait_after(found):
            self._host.end(Outcome("failed", found))
            return
        assert self._mesh is not None
        self._mesh.close()
        self._joined = False
        self._rejoin.begin(found)
        if self._is_cleared:  # for another reason, which the first host had heard before it was lost
            self._rejoin.cleared()

    def _can_wait_after(self, found: Verdict) -> bool:
        """Whether it is the first host alone that has to be replaced, and the job is to go on."""
        is_over = self._host.stopping or self._host.outcome is not None
        return self._is_prepared and not is_over and found.kind is Kind.HOST_LOST and found.host == self._leader

    def on_message(self, leader: str, message: list[str]) -> None:
        kind, *fields = message
        if kind == "go":
            self._host.start_ranks(fields)
        elif kind == "daemon":
            self._start_daemon(*fields)
        elif kind == "clock":
            self._send("clock", fields[0], str(time.time_ns()))
        elif kind == "are_you_there":
            self._send("here")
        elif kind == "step_over":
            self._host.step_over()
        elif kind == "stalled":
            from ...failures.horovod_stalls import Stall  # only where Horovod has said so

            self._host.stalled(Stall.from_json(fields[0]))
        elif kind == "bound":
            self._host.bound_learnt(float(fields[0]))
        elif kind == "clear":
            self._host.end_attempt(Verdict.from_json(fields[0]))
        elif kind == "again":
            self._is_cleared = False
            self._host.begin_again(int(fields[0]))
        elif kind == "stop":
            self._host.stop()
        elif kind == "end":
            self._host.end(Outcome.from_fields(*fields))

    def _start_daemon(self, node: str, request: str) -> None:
        self._daemon = MpiDaemon(self._host.spec, self._host.toolkit, self._say_ready, self.report)
        try:
            self._daemon.start(node, request)
        except (ConfigurationError, OSError) as error:
            self._send("daemon", str(error))
        else:
            self._send("daemon", STARTED)
