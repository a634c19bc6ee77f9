"""A host's line to its platform: what follows an attempt that failed and, of one elsewhere, all else that it says.

The first host asks for all; the others only where that is lost. Each of them beats, so that the platform notices
hosts that are all frozen, and that no other host could miss.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from ...contract.cluster import address_and_port
from ...failures.verdict import Verdict
from ...mesh.pulse import Loss, Pulse
from ...runtime.links import Link, connect_unix, short_path
from ...runtime.loop import Loop

if TYPE_CHECKING:
    from ..spec import HostSpec

PLATFORM = "platform"
"""The name by which a platform elsewhere proves itself to the hosts."""
FAILED = "failed"
"""To the platform: an attempt failed, and nothing of its ranks is left. With what `PlatformLine.ask` is given."""
BEAT = "beat"
"""To it: this host is not frozen. It comes every `pulse.BEAT_SECONDS` from the first one on."""
LISTENS = "listens"
"""To one elsewhere: the other hosts can join this one, the first, at an address."""
AGAIN = "again"
"""From it: another attempt follows. With the address of the first host, which is empty where that is the same; with
the address that the first host gave when it asked: where it has asked again since, this is no answer to that; and with
how many attempts there were before. Older platforms leave out the last, or the last two.
"""
END = "end"
"""None does."""
STOP = "stop"
"""From one elsewhere: the job is to stop."""
JOIN = "join"
"""From one elsewhere: with the address at which the first host listens."""

Hear = Callable[["list[str]"], None]
OnAgain = Callable[[str, "int | None"], None]
"""Called with the address of the first host that AGAIN has, and with how many attempts there were before, if known."""


class Wire(Protocol):
    """What carries the messages."""

    def send(self, *fields: str) -> None:
        """Send a message, as soon as the platform is there."""

    def begin_to_beat(self) -> None:
        """Send beats from now on."""

    def close(self) -> None:
        """Send and hear nothing more."""


class PlatformLine:
    """What a host says to its platform, and hears from it."""

    def __init__(self, spec: HostSpec, loop: Loop, on_stop: Callable[[], None], on_gone: Callable[[], None]) -> None:
        """`on_stop` and `on_gone` are of a platform elsewhere: it has the job stop, or is no longer there.

        Raises OSError.
        """
        self.is_elsewhere = spec.settings.platform_address is not None
        self.may_say_again = not self.is_elsewhere or spec.settings.restarts.at_most > 0
        """Whether another attempt may follow one that fails."""
        self.on_join: Callable[[str], None] = _expect_nothing
        """Called with the address of the first host."""
        self._asked = ""
        """The address at which others can join, as it was last given."""
        self._on_stop = on_stop
        self._on_gone = on_gone
        self._on_again: OnAgain = _expect_nothing
        self._on_end: Callable[[], None] = _expect_nothing
        self._wire: Wire
        if spec.settings.platform_address is None:
            self._wire = HereWire(loop, spec.layout.platform, self._hear, self._lost)
        else:
            self._wire = _MeshWire(loop, spec, spec.settings.platform_address, self._hear, self._lost)

    @property
    def begin_to_beat(self) -> Callable[[], None]:
        """From now on this host answers to nothing that could hold it up for long."""
        return self._wire.begin_to_beat

    def expect(self, on_again: OnAgain, on_end: Callable[[], None]) -> None:
        """`on_again` is called when another attempt follows, and `on_end` when none does, or the platform is gone."""
        self._on_again, self._on_end = on_again, on_end

    def ask(self, found: Verdict, address: str, lost: Iterable[str]) -> None:
        """Say why the attempt failed; one of the two callbacks is the answer.

        `lost` are the hosts that another attempt needs others for, which join at `address`.
        """
        self._asked = address
        self._wire.send(FAILED, found.to_json(), address, *lost)

    def listens_at(self, address: str) -> None:
        """Say where the other hosts can join this one."""
        self._wire.send(LISTENS, address)

    def close(self) -> None:
        """Neither ask nor hear anything any more."""
        self._wire.close()

    def _hear(self, message: list[str]) -> None:
        kind, *fields = message
        if kind == AGAIN:
            self._another_follows(*fields)
        elif kind == END:
            self._on_end()
        elif kind == STOP:
            self._on_stop()
        elif kind == JOIN:
            self.on_join(fields[0])

    def _another_follows(self, address: str, answered: str | None = None, so_far: str = "") -> None:
        if answered in (None, self._asked):
            self._on_again(address, int(so_far) if so_far else None)

    def _lost(self) -> None:
        self._on_end()
        if self.is_elsewhere:
            self._on_gone()


class HereWire:
    """To a platform on the same machine, by a socket in the host's own folder."""

    def __init__(self, loop: Loop, path: str, hear: Hear, lost: Callable[[], None]) -> None:
        """Raises OSError."""
        with short_path(path) as short:
            sock = connect_unix(short)
        self._link = Link(loop, sock, lambda link, message: hear(message), lambda link: lost())
        self._pulse = Pulse(loop, lambda strain: self._link.send(BEAT), _expect_nothing)
        self.send = self._link.send
        self.begin_to_beat = self._pulse.begin

    def close(self) -> None:
        self._pulse.stop()
        self._link.close()


class _MeshWire:
    """To a platform on another machine: a member of a mesh whose leader that is. See `MeshObserver`."""

    def __init__(self, loop: Loop, spec: HostSpec, address: str, hear: Hear, lost: Callable[[], None]) -> None:
        """Raises ConfigurationError where the host could not trust it."""
        from ...mesh.mesh import Member, MeshWorker  # a host of this machine needs none

        self._hear = hear
        self._lost = lost
        self._unsent: list[tuple[str, ...]] | None = []
        member = Member(spec.name, (PLATFORM,), spec.required_secret())
        deadline = time.monotonic() + spec.settings.world_timeout
        self._mesh = MeshWorker(loop, member, self, lambda: address_and_port(address), deadline)
        self.begin_to_beat = self._mesh.begin_to_beat
        self.close = self._mesh.close

    def send(self, *fields: str) -> None:
        if self._unsent is None:
            self._mesh.send(*fields)
        else:
            self._unsent.append(fields)

    def on_joined(self, host: str) -> None:
        unsent, self._unsent = self._unsent or [], None
        for fields in unsent:
            self._mesh.send(*fields)

    def on_message(self, host: str, message: list[str]) -> None:
        self._hear(message)

    def on_lost(self, host: str, how: Loss) -> None:
        self._lost()


def _expect_nothing(*_: object) -> None:
    """The platform here sends no beats, for its end closes the connection; and few expect all that it may say."""
