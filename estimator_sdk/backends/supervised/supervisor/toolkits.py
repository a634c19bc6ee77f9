"""The toolkits of a job's hosts on other machines, as their supervisor speaks with them: over one mesh."""

from __future__ import annotations

import socket
from collections.abc import Callable

from estimator_container.failures.verdict import Verdict
from estimator_container.host.coordination import platform_line as platform
from estimator_container.mesh.endpoint import text_of
from estimator_container.mesh.mesh import Member, MeshLeader
from estimator_container.mesh.pulse import Loss
from estimator_container.runtime.loop import Loop

from .hosts_line import MISSED_BEATS, FirstWord, OnAttemptFailed


class ToolkitLine:
    """The line to one toolkit: see `HostsLine`."""

    def __init__(
        self, toolkits: Toolkits, host: str, on_failed: OnAttemptFailed, on_silence: Callable[[], None]
    ) -> None:
        self.is_closed = False
        self.untold = 0
        """How often it has said that an attempt failed, which cannot be told yet."""
        self.waits_for_first: int | None = None
        """After how many attempts it begins again, once the first host has said where it is; None where it does not."""
        self.first_word = FirstWord(toolkits.loop, on_silence, lambda: toolkits.has_begun(host))
        self._is_up = False
        self._toolkits = toolkits
        self._host = host
        self.on_failed = on_failed
        self.on_silence = on_silence

    @property
    def is_up(self) -> bool:
        return self._is_up

    @is_up.setter
    def is_up(self, is_up: bool) -> None:
        self._is_up = is_up
        if is_up:
            self.first_word.come()

    @property
    def has_come(self) -> bool:
        return self.first_word.has_come

    @property
    def has_asked(self) -> bool:
        return self.is_up and self.untold > 0

    def prepare_again(self) -> None:
        self._toolkits.prepare_again(self._host)

    def begin_again(self, so_far: int, first_host_at: str = "", answered: str = "") -> None:
        self._toolkits.begin_again(self._host, so_far, answered)

    def end(self) -> None:
        self._toolkits.tell(self._host, platform.END)

    def close(self) -> None:
        self.is_closed = True
        self.first_word.stop()

    def failed(self, found: Verdict, address: str, lost: tuple[str, ...]) -> None:
        """What the toolkit has said may be told now."""
        self.untold -= 1
        if not self.is_closed:
            self.on_failed(found, address, lost)


class Toolkits:
    """All of them, for as long as one allocation lasts. See `MeshObserver` for what they say."""

    def __init__(
        self,
        loop: Loop,
        hosts: tuple[str, ...],
        secret: bytes,
        has_begun: Callable[[str], bool] = lambda host: True,
    ) -> None:
        """The first of the hosts leads; who knows the secret is one of them.

        `has_begun` says whether the toolkit of a host that was started runs: before that nobody misses its word.
        """
        self.first_host_at = ""
        """Where the others find the first one; empty until it has said so."""
        self.prepare_again: Callable[[str], None] = lambda host: None
        """Called before a host begins again."""
        self.before_failed: Callable[[Callable[[], None]], None] = lambda then: then()
        """Called before it is told that an attempt has failed; it calls what it is given, once, when that may be."""
        self.loop, self.has_begun = loop, has_begun
        self._member = Member(platform.PLATFORM, hosts, secret)
        self._first = hosts[0]
        self._lines: dict[str, ToolkitLine] = {}
        self._joined: set[str] = set()
        self._is_stopping = False
        self._awaits_first = False
        self._mesh: MeshLeader | None = None
        self._door: socket.socket
        """Open as long as any of them may come."""

    def listen(self, address: str) -> None:
        """Let them in at an address of this machine. Raises OSError."""
        self._door = socket.create_server((address, 0), backlog=len(self._member.peers) + 128)
        self._mesh = MeshLeader(self.loop, self._member, self, self._door.dup(), MISSED_BEATS)

    @property
    def address(self) -> str:
        """Where they find this process."""
        return text_of(self._door)

    def line_to(self, host: str, on_failed: OnAttemptFailed, on_silence: Callable[[], None]) -> ToolkitLine:
        """A line to a host that is about to be started."""
        self._lines[host] = line = ToolkitLine(self, host, on_failed, on_silence)
        return line

    def expect(self, host: str, first_host_at: str) -> None:
        """A host is about to be started in the place of one that is lost; others than the first join that there."""
        if host == self._first:
            self.first_host_at, self._awaits_first = "", True
        elif not self._awaits_first:
            self.first_host_at = first_host_at
        self._joined.discard(host)
        if self._mesh is not None:
            self._mesh.expect([host], self._door.dup())

    def started(self, host: str) -> None:
        """Its machine is told to start it now."""
        if host in self._lines and host not in self._joined:
            self._lines[host].first_word.expect()

    def tell(self, host: str, *fields: str) -> None:
        """Send a message to a host that is there."""
        if self._mesh is not None:
            self._mesh.send(host, *fields)

    def begin_again(self, host: str, so_far: int, answered: str) -> None:
        """Have a host begin again as soon as it is known where the first one is."""
        if self.first_host_at or host == self._first:
            self.tell(host, platform.AGAIN, self.first_host_at, answered, str(so_far))
        else:
            self._lines[host].waits_for_first = so_far

    def stop(self) -> None:
        """Have all hosts stop, those too that come later."""
        self._is_stopping = True
        for host in self._joined:
            self.tell(host, platform.STOP)

    def ended(self, host: str) -> None:
        """Its toolkit is no more."""
        self._joined.discard(host)
        if host in self._lines:
            self._lines[host].is_up = False
            self._lines[host].first_word.stop()

    def close(self) -> None:
        """Speak with nobody any more."""
        if self._mesh is not None:
            self._mesh.close()
            self._door.close()

    # What they say.

    def on_joined(self, host: str) -> None:
        self._joined.add(host)
        if host in self._lines:
            self._lines[host].is_up = True
        if self.first_host_at and host != self._first:
            self.tell(host, platform.JOIN, self.first_host_at)
        if self._is_stopping:
            self.tell(host, platform.STOP)

    def on_message(self, host: str, message: list[str]) -> None:
        kind, *fields = message
        if kind == platform.LISTENS:
            self._first_listens(fields[0])
        elif kind == platform.FAILED and host in self._lines:
            verdict, address, *lost = fields
            line = self._lines[host]
            line.untold += 1
            self.before_failed(lambda: line.failed(Verdict.from_json(verdict), address, tuple(lost)))

    def on_lost(self, host: str, how: Loss) -> None:
        """A connection that was closed says nothing: the toolkit ends, too."""
        self._joined.discard(host)
        if host in self._lines:
            self._lines[host].is_up = False
            if how is Loss.SILENT and not self._lines[host].is_closed:
                self._lines[host].on_silence()

    def _first_listens(self, address: str) -> None:
        self.first_host_at, self._awaits_first = address, False
        for host in self._joined - {self._first}:
            line = self._lines.get(host)
            if line is not None and line.waits_for_first is not None:
                so_far, line.waits_for_first = line.waits_for_first, None
                self.tell(host, platform.AGAIN, address, "", str(so_far))
            else:
                self.tell(host, platform.JOIN, address)
