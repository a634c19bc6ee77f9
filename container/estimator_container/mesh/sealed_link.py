"""A connection between two hosts that have proved themselves to each other."""

from __future__ import annotations

from collections.abc import Callable

from ..runtime.links import Link
from ..runtime.loop import Loop
from ..runtime.wire import MAX_MESSAGE
from .handshake import Seal
from .pulse import MISSED_BEATS, Loss, Pulse

BEAT = "beat"
"""With the seconds of the sender's strain: see `Pulse`."""
UNHEARD = "unheard"
"""The last word to an end that has fallen silent: one that only stood still would blame whoever closes on it."""

OnMessage = Callable[[str, "list[str]"], None]
OnLost = Callable[[str, Loss], None]
"""Called with the host that is lost, and how."""


class SealedLink:
    """A link to a host that has proved who it is."""

    def __init__(
        self,
        loop: Loop,
        link: Link,
        seal: Seal,
        on_message: OnMessage,
        on_lost: OnLost,
        missed_beats: int = MISSED_BEATS,
    ) -> None:
        self._link = link
        self._seal = seal
        self._on_message = on_message
        self._on_lost = on_lost
        self._pulse = Pulse(loop, self._beat, self._give_up, missed_beats)
        link.allow_messages_of(MAX_MESSAGE)
        link.on_message = self._unwrap
        link.on_close = lambda link: self._lose(Loss.CLOSED)

    def begin_to_beat(self) -> None:
        """Let the other end count on a beat every `pulse.BEAT_SECONDS`; it does not count on any before."""
        self._pulse.begin()

    def expect_beats(self) -> None:
        """The other end begins to beat as soon as it knows that this link is there."""
        self._pulse.expect()

    def send(self, *fields: str) -> None:
        """Send a message; nothing happens if the connection is closed."""
        if not self._link.closed:
            self._link.send(*self._seal.wrap(fields))

    def close(self) -> None:
        """Stop the heartbeats, and close the connection."""
        self._pulse.stop()
        self._link.close()

    def _unwrap(self, link: Link, message: list[str]) -> None:
        fields = self._seal.unwrap(message)
        if fields is None:
            self._lose(Loss.CLOSED)
        elif fields[:1] == [BEAT]:
            self._pulse.heard_beat(_seconds(fields[1:]))
        elif fields == [UNHEARD]:
            self._lose(Loss.STOOD_STILL if self._pulse.was_held_up else Loss.UNHEARD)
        else:
            self._pulse.heard()
            self._on_message(link.peer, fields)

    def _beat(self, strain: float) -> None:
        self.send(BEAT, f"{strain:.3f}")

    def _give_up(self) -> None:
        self.send(UNHEARD)
        if not self._link.closed:  # as it is where sending has failed
            self._lose(Loss.SILENT)

    def _lose(self, how: Loss) -> None:
        self.close()
        self._on_lost(self._link.peer, how)


def _seconds(said: list[str]) -> float:
    """A strain; 0 from a toolkit that says none."""
    try:
        return float(said[0])
    except (IndexError, ValueError):
        return 0.0
