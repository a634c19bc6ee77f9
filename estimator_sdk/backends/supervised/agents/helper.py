"""A process that works for the supervisor: told over a socket, heard in the loop, ended at any moment."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable

from estimator_container.runtime.children import Children
from estimator_container.runtime.links import Link
from estimator_container.runtime.loop import Loop

from ..detached import bare


class Helper:
    """Runs `python -I -S SCRIPT FD SEARCH_PATH`."""

    def __init__(
        self,
        loop: Loop,
        children: Children,
        script: str,
        hear: Callable[[list[str]], None],
        ended: Callable[[int], None],
    ) -> None:
        """`ended` is called with its exit code, or minus a signal's number, unless `kill` ended it. Raises OSError."""
        self._loop = loop
        self._on_ended = ended
        self._over = False
        self._killed = False
        ours, theirs = socket.socketpair()
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            self._pid = children.start(bare(script, str(theirs.fileno())), os.environ, self._ended)
        self._link = Link(loop, ours, lambda link, message: hear(message), lambda link: None)

    def send(self, *fields: str) -> None:
        self._link.send(*fields)

    def close(self) -> None:
        """Hear no more of it; it sees that, and ends by itself."""
        self._link.close()

    def kill(self) -> None:
        """When this returns it is gone, and what it had open is closed."""
        self._killed = True
        if not self._over:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        self.close()  # not earlier: it would take that for our death
        if not self._over:
            self._loop.run_until(lambda: self._over)

    def _ended(self, code: int) -> None:
        self._over = True
        if not self._killed:
            self._on_ended(code)
