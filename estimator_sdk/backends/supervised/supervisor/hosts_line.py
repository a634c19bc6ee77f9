"""The supervisor's end of the line to a host, which asks what follows an attempt that failed.

The first host asks for all; the others only where that is lost. It also notices a host that is frozen, if nobody else
does: where all of them are, no other host is left that could tell.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from estimator_container.contract.names import Layout
from estimator_container.failures.verdict import Verdict
from estimator_container.host.coordination.platform_line import AGAIN, BEAT, END, FAILED
from estimator_container.mesh.pulse import BEAT_SECONDS, Pulse, silent_seconds
from estimator_container.runtime.links import Link, Listener, listen_unix, short_path
from estimator_container.runtime.loop import Loop

from ....values.home import make_folder

MISSED_BEATS = 60  # so late that any host that can tell who is frozen has told it long before: see `mesh.pulse`
SILENT_SECONDS = silent_seconds(MISSED_BEATS)
FIRST_WORD_BEATS = 120
"""That a toolkit which has been started has for its first word: many may start at once, on a machine with few CPUs."""
FIRST_WORD_SECONDS = (FIRST_WORD_BEATS - 1) * BEAT_SECONDS


class OnAttemptFailed(Protocol):
    """What is called when a host says that an attempt failed."""

    def __call__(self, found: Verdict, address: str, lost: tuple[str, ...], /) -> None:
        """Because of `found`; others can join at `address`, and `lost` are the hosts that they have to replace."""


class HostsLine(Protocol):
    """The line to one host: hears that hosts stand by after an attempt, and has them begin another one."""

    @property
    def is_up(self) -> bool:
        """Whether the host is there to say something."""

    @property
    def has_come(self) -> bool:
        """Whether it has ever been."""

    @property
    def has_asked(self) -> bool:
        """Whether it is there and has said that an attempt failed, which cannot be told yet."""

    def prepare_again(self) -> None:
        """Bring the hosts what another attempt needs. It may take long, and others may be lost meanwhile."""

    def begin_again(self, so_far: int, first_host_at: str = "", answered: str = "") -> None:
        """Have the hosts run another attempt, after so many; the address is that of a first host that was made anew.

        `answered` is the one that a first host gave when it asked. It does nothing where it has asked again meanwhile.
        """

    def end(self) -> None:
        """No other attempt follows: the hosts end by themselves."""

    def close(self) -> None:
        """Hear nothing more."""


class FirstWord:
    """Waits for a host to come whose toolkit has been started: nobody else would miss one that freezes before that.

    The time is counted in beats of this process, as `Pulse` does: who was held up accuses nobody.
    """

    def __init__(
        self, loop: Loop, on_silence: Callable[[], None], has_begun: Callable[[], bool] = lambda: True
    ) -> None:
        """`on_silence` is called when none has come in time; not before `has_begun` says that the toolkit runs."""
        self.has_come = False
        self._loop = loop
        self._on_silence = on_silence
        self._has_begun = has_begun
        self._pulse: Pulse | None = None

    def expect(self) -> None:
        """The host has been started."""
        self.stop()
        self._pulse = Pulse(self._loop, lambda strain: None, self._late, FIRST_WORD_BEATS)
        self._pulse.expect()

    def come(self) -> None:
        """It is there."""
        self.has_come = True
        self.stop()

    def stop(self) -> None:
        """Wait no more."""
        if self._pulse is not None:
            self._pulse.stop()

    def _late(self) -> None:
        if self._has_begun():
            self._on_silence()
        else:
            self.expect()


class LineHere:
    """To a host of this machine, by a socket in its own folder."""

    def __init__(
        self,
        loop: Loop,
        layout: Layout,
        on_failed: OnAttemptFailed,
        on_silence: Callable[[], None],
        comes_soon: bool,
    ) -> None:
        """`layout` is that of the host, which is not there yet. Raises OSError.

        `on_silence` is called when the host says nothing any more though its connection is there, and where it
        `comes_soon` once it is started, when it has not come. A toolkit that sends no beats, as older ones do not, is
        never silent.
        """
        self._loop = loop
        self._path = Path(layout.platform)
        self._on_failed = on_failed
        self._on_silence = on_silence
        self._link: Link | None = None
        self._pulse: Pulse | None = None
        self._first_word = FirstWord(loop, on_silence)
        make_folder(layout.config)
        with short_path(str(self._path)) as path:
            self._listener = Listener(loop, listen_unix(path), self._accept)
        if comes_soon:
            self._first_word.expect()  # while hosts are started no beat of this process passes

    @property
    def is_up(self) -> bool:
        return self._link is not None and not self._link.closed

    @property
    def has_come(self) -> bool:
        return self._first_word.has_come

    @property
    def has_asked(self) -> bool:
        return False  # what it says is told at once

    def prepare_again(self) -> None:
        """They have it."""

    def begin_again(self, so_far: int, first_host_at: str = "", answered: str = "") -> None:
        if self._link is not None:
            self._link.send(AGAIN, first_host_at, answered, str(so_far))

    def end(self) -> None:
        if self._link is not None:
            self._link.send(END)

    def close(self) -> None:
        self._listener.close()
        self._first_word.stop()
        if self._link is not None:
            self._link.close()
            self._expect_nothing()

    def _accept(self, sock: socket.socket) -> None:
        """Only the host's toolkit is there so early; a script finds nothing that it could speak to."""
        self._listener.close()
        self._path.unlink()
        self._first_word.come()
        self._link = Link(self._loop, sock, self._on_message, lambda link: self._expect_nothing())
        self._pulse = Pulse(self._loop, lambda strain: None, self._on_silence, MISSED_BEATS)

    def _expect_nothing(self) -> None:
        """The host has ended, or is about to: that it is silent means nothing."""
        if self._pulse is not None:
            self._pulse.stop()

    def _on_message(self, link: Link, message: list[str]) -> None:
        kind, *fields = message
        assert self._pulse is not None
        if kind == BEAT:
            self._pulse.heard_beat()
        else:
            self._pulse.heard()
        if kind == FAILED:
            verdict, address, *lost = fields
            self._on_failed(Verdict.from_json(verdict), address, tuple(lost))
