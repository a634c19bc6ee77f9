"""The connections between the hosts of a job: every other host to the first one.

`MeshLeader` accepts the workers, `MeshWorker` finds the leader. Both tell a `MeshObserver` of messages by host name
and of the loss of a host, and nothing of how they got to know.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from ..runtime.links import Link, Listener
from ..runtime.loop import Loop
from .handshake import Seal, code, new_nonce, same, session_key
from .pulse import MISSED_BEATS, Loss
from .sealed_link import SealedLink
from .unproven_connections import LIMIT, SECONDS, UnprovenConnections

STRANGER_LIMIT = 4096  # bytes that a connection may send in one message before it has proved itself
CONNECT_RETRY_SECONDS = 0.02  # a host that is not up yet refuses; nothing else would tell

WELCOME = "welcome"
"""The leader's first sealed message. Until it is there a worker cannot tell whether its proof has arrived."""


class Member(NamedTuple):
    """A host as the mesh knows it."""

    name: str
    peers: tuple[str, ...]
    """The hosts that it is connected to: the first one to all others, and each of those to the first one alone."""
    secret: bytes
    """What all hosts of the job prove themselves with."""


class MeshObserver(Protocol):
    """What a member is told of its peers."""

    def on_joined(self, host: str) -> None:
        """The host has proved who it is; nothing is heard of it before."""

    def on_message(self, host: str, message: list[str]) -> None:
        """The host has sent these fields."""

    def on_lost(self, host: str, how: Loss) -> None:
        """The connection to the host has ended. A worker may never have met the leader."""


class MeshLeader:
    """The first host's side: takes each worker once, and only with the right secret; listens until all are there.

    Every worker beats from its welcome on, so one that freezes before its first beat is missed, too.
    """

    def __init__(
        self,
        loop: Loop,
        member: Member,
        observer: MeshObserver,
        sock: socket.socket,
        missed_beats: int = MISSED_BEATS,
    ) -> None:
        """`missed_beats` are those after which a worker counts as silent."""
        self._missed_beats = missed_beats
        self.links: dict[str, SealedLink] = {}
        self._loop = loop
        self._member = member
        self._observer = observer
        self._unproven = UnprovenConnections(loop, LIMIT + len(member.peers))
        self._beats = False
        self._listener = Listener(loop, sock, self._meet)

    @property
    def missing(self) -> list[str]:
        """The workers that have not joined yet, in their order."""
        return [worker for worker in self._member.peers if worker not in self.links]

    def expect(self, hosts: Collection[str], sock: socket.socket) -> None:
        """Take others in the place of workers that are lost."""
        for host in hosts:
            link = self.links.pop(host, None)
            if link is not None:
                link.close()
        self._close_door()
        self._listener = Listener(self._loop, sock, self._meet)

    def send(self, host: str, *fields: str) -> None:
        """Send a message to one host; nothing happens if it is not connected."""
        if host in self.links:
            self.links[host].send(*fields)

    def broadcast(self, *fields: str) -> None:
        """Send a message to all other hosts."""
        for link in self.links.values():
            link.send(*fields)

    def begin_to_beat(self) -> None:
        """Let every worker, those that join later too, count on this host's beats."""
        self._beats = True
        for link in self.links.values():
            link.begin_to_beat()

    def close(self) -> None:
        """Stop listening, and close all connections."""
        self._close_door()
        for link in self.links.values():
            link.close()

    def _close_door(self) -> None:
        self._listener.close()
        self._unproven.close()

    def _meet(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unproven.meet(Link(self._loop, sock, self._hello, self._unproven.know, STRANGER_LIMIT))

    def _is_awaited(self, host: str) -> bool:
        return host in self._member.peers and host not in self.links

    def _hello(self, link: Link, message: list[str]) -> None:
        if len(message) != 3 or message[0] != "hello" or not self._is_awaited(message[1]):
            self._unproven.dismiss(link)
            return
        _, host, worker_nonce = message
        nonce = new_nonce()
        expected = code(self._member.secret, "worker", host, nonce, worker_nonce)
        key = session_key(self._member.secret, worker_nonce, nonce)

        def proof(link: Link, message: list[str]) -> None:
            proved = len(message) == 2 and message[0] == "proof" and same(message[1], expected)
            # Another connection may have joined as this host meanwhile.
            if proved and self._is_awaited(host):
                self._admit(link, host, Seal(key, "leader", "worker"))
            else:
                self._unproven.dismiss(link)

        link.on_message = proof
        link.send("challenge", nonce, code(self._member.secret, "leader", host, worker_nonce, nonce))

    def _admit(self, link: Link, host: str, seal: Seal) -> None:
        self._unproven.know(link)
        link.peer = host
        observer = self._observer
        self.links[host] = SealedLink(self._loop, link, seal, observer.on_message, observer.on_lost, self._missed_beats)
        self.links[host].send(WELCOME)
        self.links[host].expect_beats()
        if self._beats:
            self.links[host].begin_to_beat()
        if not self.missing:
            self._close_door()
        self._observer.on_joined(host)


class MeshWorker:
    """Another host's side: connects to the first one as soon as that answers."""

    def __init__(
        self,
        loop: Loop,
        member: Member,
        observer: MeshObserver,
        find_leader: Callable[[], tuple[str, int]],
        deadline: float,
        missed_beats: int = MISSED_BEATS,
        refused_seconds: float = math.inf,
    ) -> None:
        """`deadline` is the time of `time.monotonic()` at which a leader that has not been met is lost, and
        `missed_beats` are those after which it counts as silent.

        It is lost earlier where nobody listens at its address for `refused_seconds`.
        """
        self._missed_beats = missed_beats
        self._loop = loop
        self.met_another = False
        """Whether somebody answered at the leader's address who does not hold the same secret."""
        self._member = member
        (self._leader,) = member.peers
        self._observer = observer
        self._find_leader = find_leader
        self._deadline = deadline
        self._refused_seconds = refused_seconds
        self._refused_since: float | None = None
        self._nonce = ""
        self._unproven: Link | None = None
        self._proved: SealedLink | None = None
        """The link to a leader that is the right one, and may not have seen yet that this is the right worker."""
        self._link: SealedLink | None = None
        self._beats = False
        self._late = loop.after(deadline - time.monotonic(), self._give_up)
        self._patience = self._retry = loop.after(0.0, self._connect)

    def send(self, *fields: str) -> None:
        """Send a message to the leader; nothing happens if there is no connection."""
        if self._link is not None:
            self._link.send(*fields)

    def begin_to_beat(self) -> None:
        """Let the leader count on this host's beats, now or as soon as it is found."""
        self._beats = True
        if self._link is not None:
            self._link.begin_to_beat()

    def close(self) -> None:
        """Stop trying to connect, and close the connections."""
        for timer in (self._late, self._patience, self._retry):
            timer.cancel()
        for link in (self._unproven, self._proved):
            if link is not None:
                link.close()

    def _give_up(self) -> None:
        self.close()
        self._observer.on_lost(self._leader, Loss.CLOSED)

    def _connect(self) -> None:
        remaining = max(CONNECT_RETRY_SECONDS, self._deadline - time.monotonic())
        try:
            sock = socket.create_connection(self._find_leader(), timeout=min(remaining, 1.0))
        except OSError as error:
            self._not_connected(isinstance(error, ConnectionRefusedError))
            return
        self._refused_since = None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(self._loop, sock, self._challenged, self._refused, STRANGER_LIMIT)
        link.peer = self._leader
        self._unproven = link
        # Whoever listens there may not be the leader, or not be able to answer.
        self._patience = self._loop.after(SECONDS, lambda: self._refused(link))
        self._nonce = new_nonce()  # or what a leader has said once could be played again
        link.send("hello", self._member.name, self._nonce)

    def _not_connected(self, is_refused: bool) -> None:
        now = time.monotonic()
        if not is_refused:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        if self._refused_since is not None and now - self._refused_since >= self._refused_seconds:
            self._give_up()
        else:
            self._connect_again()

    def _connect_again(self) -> None:
        self._retry = self._loop.after(CONNECT_RETRY_SECONDS, self._connect)

    def _refused(self, link: Link) -> None:
        link.close()
        self._patience.cancel()
        self._unproven = None
        self._connect_again()

    def _challenged(self, link: Link, message: list[str]) -> None:
        if len(message) != 3 or message[0] != "challenge":
            self._refused(link)
            return
        _, nonce, proof = message
        if not same(proof, code(self._member.secret, "leader", self._member.name, self._nonce, nonce)):
            self.met_another = True
            self._refused(link)
            return
        link.send("proof", code(self._member.secret, "worker", self._member.name, nonce, self._nonce))
        if link.closed:
            return
        self._patience.cancel()
        self._unproven = None
        seal = Seal(session_key(self._member.secret, self._nonce, nonce), "worker", "leader")
        self._proved = SealedLink(self._loop, link, seal, self._on_leader_message, self._lose, self._missed_beats)

    def _on_leader_message(self, leader: str, message: list[str]) -> None:
        if self._link is not None:
            self._observer.on_message(leader, message)
        elif message == [WELCOME]:
            self._late.cancel()
            self._link = self._proved
            if self._beats:
                self.begin_to_beat()
            self._observer.on_joined(leader)

    def _lose(self, leader: str, how: Loss) -> None:
        """Without a welcome it was turned away, in a crowd or because its proof came too late."""
        if self._link is not None:
            self._observer.on_lost(leader, how)
        else:
            self._connect_again()
