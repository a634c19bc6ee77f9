"""Whether the other end of a connection is still there: a frozen host and a cut cable close no connection."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

from ..runtime import machine
from ..runtime.loop import Loop

BEAT_SECONDS = 0.5
MISSED_BEATS = 5  # after which the other end counts as silent: 2 to 2.5 seconds after its last word
SILENT_SECONDS = (MISSED_BEATS - 1) * BEAT_SECONDS
ASK_SECONDS = 0.5  # that an answer may take on the network of a job
_DISCARD_PORT = 9  # RFC 863: nobody listens there, so whoever is there refuses


class Pulse:
    """Sends beats once this end is ready, and counts those that the other end owes once it has sent one.

    Missed beats are counted in this end's own beats, not in seconds: whoever was himself held up accuses nobody.
    """

    def __init__(
        self,
        loop: Loop,
        send: Callable[[], None],
        on_silence: Callable[[], None],
        missed_beats: int = MISSED_BEATS,
    ) -> None:
        """`on_silence` is called once, when the other end owes so many beats."""
        self._loop = loop
        self._missed_beats = missed_beats
        self._send = send
        self._on_silence = on_silence
        self._sends = False
        self._missed: int | None = None
        self._timer = loop.after(BEAT_SECONDS, self._beat)

    def begin(self) -> None:
        """From now on this end answers to nothing that could hold it up for long."""
        self._sends = True
        self._send()

    def heard_beat(self) -> None:
        """The other end has begun, or goes on."""
        self._missed = 0

    def heard(self) -> None:
        """The other end has said something."""
        if self._missed is not None:
            self._missed = 0

    def stop(self) -> None:
        """Neither send nor expect anything any more."""
        self._timer.cancel()

    def _beat(self) -> None:
        self._timer = self._loop.after(BEAT_SECONDS, self._beat)
        if self._sends:
            self._send()
        if self._missed is not None:
            self._missed += 1
            if self._missed >= self._missed_beats:
                self.stop()
                self._on_silence()


class Reach:
    """Tells a host that hears nobody whether it is the one that is cut off: it asks the gateway of its network.

    A gateway that did not answer when all was well says nothing later.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._gateway = ""

    def learn(self) -> None:
        """Find a gateway that answers."""
        gateway = machine.gateway()
        if gateway:
            ask(self._loop, gateway, ASK_SECONDS, lambda answered: setattr(self, "_gateway", answered and gateway))

    def check(self, then: Callable[[bool], object]) -> None:
        """Call `then`, `ASK_SECONDS` from now, with whether this host is known to be cut off."""
        answers: list[bool] = []
        if self._gateway:
            ask(self._loop, self._gateway, ASK_SECONDS / 2, answers.append)
        self._loop.after(ASK_SECONDS, lambda: then(answers == [False]))


def ask(loop: Loop, address: str, seconds: float, then: Callable[[bool], object]) -> None:
    """Call `then` with whether anything answers at an IPv4 address, be it with a refusal."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    answers = (0, errno.ECONNREFUSED)
    result = sock.connect_ex((address, _DISCARD_PORT))
    if result != errno.EINPROGRESS:
        sock.close()
        then(result in answers)
        return

    def end(answered: bool) -> None:
        late.cancel()
        loop.forget(sock.fileno())
        sock.close()
        then(answered)

    late = loop.after(seconds, lambda: end(False))
    loop.on_readable_or_writable(
        sock.fileno(), lambda: end(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in answers)
    )
