"""Whether the other end of a connection is still there: a frozen host and a cut cable close no connection."""

from __future__ import annotations

import enum
import errno
import socket
import time
from collections.abc import Callable
from typing import Protocol

from ..runtime import machine
from ..runtime.loop import Loop, Timer

BEAT_SECONDS = 0.5
MISSED_BEATS = 5  # after which the other end counts as silent: 2 to 2.5 seconds after its last word
PATIENT_BEATS = 40
"""The most missed beats that are tolerated where either end lacks CPU time."""
PATIENCE = 8.0
"""Seconds of patience for a second by which a beat was late: where many processes start on few CPUs, each delay of a
toolkit may be several times the one before.
"""
FORGETTING = 0.9
"""What is left of a strain one beat later: half of it after 3.5 s, a tenth after 11 s."""
ASK_SECONDS = 0.5  # that an answer may take on the network of a job
ASKS = 2
_DISCARD_PORT = 9  # RFC 863: nobody listens there, so whoever is there refuses


def silent_seconds(missed_beats: int) -> float:
    """For how long nothing was heard of an end that owes so many beats, at least."""
    return (missed_beats - 1) * BEAT_SECONDS


class Loss(enum.Enum):
    """How a connection has ended."""

    CLOSED = "closed"
    """The other end is gone, has closed it, or was never met."""
    SILENT = "silent"
    """The other end owes too many beats, and the connection was still there."""
    UNHEARD = "unheard"
    """The other end has missed too many beats of this one, and said so before it closed the connection."""
    STOOD_STILL = "stood still"
    """The same, and this end knows that it was held up."""


class Timers(Protocol):
    """What calls back later."""

    def after(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Run `callback` in so many seconds."""


class Strain:
    """How far this end was lately kept from its work: the greatest delay of its beats in seconds, slowly forgotten."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def beat(self, late: float) -> None:
        """A beat came so many seconds after it was due."""
        self.seconds = max(late, self.seconds * FORGETTING)


class Pulse:
    """Sends beats once this end is ready, and counts those that the other end owes: once it has sent one, or is to.

    Missed beats are counted in this end's own beats, not in seconds: whoever was himself held up accuses nobody. And
    each beat says how far its sender lacks CPU time: where either end does, more missed beats are tolerated. A host
    that freezes on an idle machine is noticed no later for that.
    """

    def __init__(
        self,
        loop: Timers,
        send: Callable[[float], None],
        on_silence: Callable[[], None],
        missed_beats: int = MISSED_BEATS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_silence` is called once, when the other end owes so many beats; `send` gets this end's strain."""
        self._loop = loop
        self._missed_beats = missed_beats
        self._send = send
        self._on_silence = on_silence
        self._now = now
        self._sends = False
        self._missed: int | None = None
        self._has_beaten = False
        """Whether the other end has ever."""
        self._strain = Strain()
        self._strain_there = 0.0
        self._timer = self._wait()

    def begin(self) -> None:
        """From now on this end answers to nothing that could hold it up for long."""
        self._sends = True
        self._send(self._strain.seconds)

    def expect(self) -> None:
        """The other end is to begin at once: it has more time for that, and is silent if it never does."""
        if self._missed is None:
            self._missed = 0

    def heard_beat(self, strain: float = 0.0) -> None:
        """The other end has begun, or goes on; with its strain in seconds."""
        self._missed, self._has_beaten = 0, True
        self._strain_there = strain

    def heard(self) -> None:
        """The other end has said something."""
        if self._missed is not None:
            self._missed = 0

    @property
    def was_held_up(self) -> bool:
        """Whether this end itself came so late to its last beats that the other one may have missed them.

        A virtual machine that is paused may not know: its clock can stand still, too.
        """
        late = max(self._strain.seconds, self._now() - self._due)
        return late >= silent_seconds(self._missed_beats) / 2

    def stop(self) -> None:
        """Neither send nor expect anything any more."""
        self._timer.cancel()

    def _wait(self) -> Timer:
        self._due = self._now() + BEAT_SECONDS
        return self._loop.after(BEAT_SECONDS, self._beat)

    def _beat(self) -> None:
        self._strain.beat(self._now() - self._due)
        self._timer = self._wait()
        if self._sends:
            self._send(self._strain.seconds)
        if self._missed is not None:
            self._missed += 1
            if self._missed >= self._tolerated_beats:
                self.stop()
                self._on_silence()

    @property
    def _tolerated_beats(self) -> int:
        if not self._has_beaten:
            return max(PATIENT_BEATS, self._missed_beats)
        strain = max(self._strain.seconds, self._strain_there)
        tolerated = self._missed_beats + int(PATIENCE * strain / BEAT_SECONDS)
        return min(tolerated, max(PATIENT_BEATS, self._missed_beats))


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
        """Call `then`, `ASK_SECONDS` from now, with whether this host is known to be cut off.

        The gateway is asked twice, for a network may lose one packet. It is later where this host lacks CPU time, so
        that it has asked twice all the same.
        """
        answers: list[bool] = []
        asks = ASKS if self._gateway else 0
        for number in range(asks):
            wait = number * ASK_SECONDS / 4
            self._loop.after(wait, lambda: ask(self._loop, self._gateway, ASK_SECONDS / 2, answers.append))

        def judge() -> None:
            if len(answers) < asks:
                self._loop.after(ASK_SECONDS / 4, judge)
            else:
                then(asks > 0 and not any(answers))

        self._loop.after(ASK_SECONDS, judge)


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
