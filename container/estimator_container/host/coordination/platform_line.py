"""A host's line to a platform that may have another attempt follow on the same hosts.

The first host speaks for all; the others only where that is lost. Each of them beats, so that the platform notices
hosts that are all frozen, and that no other host could miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...contract.names import Layout
from ...failures.verdict import Verdict
from ...mesh.pulse import Pulse
from ...runtime.links import Link, connect_unix, short_path
from ...runtime.loop import Loop

FAILED = "failed"
"""To the platform: an attempt failed, and nothing of its ranks is left. With what `PlatformLine.ask` is given."""
BEAT = "beat"
"""To it: this host is not frozen. It comes every `pulse.BEAT_SECONDS` from the first one on."""
AGAIN = "again"
"""From it: another attempt follows. With the address of the first host, which is empty where that is the same."""
END = "end"
"""None does."""


class PlatformLine:
    """Asks what follows an attempt that failed."""

    def __init__(self, loop: Loop, layout: Layout, on_again: Callable[[str], None], on_end: Callable[[], None]) -> None:
        """`on_again` is called with the address that AGAIN has, and `on_end` when no other attempt follows, or the
        platform is gone. Raises OSError.
        """
        self._on_again = on_again
        self._on_end = on_end
        with short_path(layout.platform) as path:
            sock = connect_unix(path)
        self._link = Link(loop, sock, self._on_message, lambda link: on_end())
        self._pulse = Pulse(loop, lambda: self._link.send(BEAT), _expect_nothing)

    def begin_to_beat(self) -> None:
        """From now on this host answers to nothing that could hold it up for long."""
        self._pulse.begin()

    def ask(self, found: Verdict, address: str, lost: Iterable[str]) -> None:
        """Say why the attempt failed; one of the two callbacks is the answer.

        `lost` are the hosts that another attempt needs others for, which join at `address`.
        """
        self._link.send(FAILED, found.to_json(), address, *lost)

    def close(self) -> None:
        """Neither ask nor hear anything any more."""
        self._pulse.stop()
        self._link.close()

    def _on_message(self, link: Link, message: list[str]) -> None:
        if message[0] == AGAIN:
            self._on_again(message[1])
        elif message[0] == END:
            self._on_end()


def _expect_nothing() -> None:
    """The platform sends no beats: its end closes the connection."""
