"""Requests for a window of the timeline: from the hosts' folders in that of the job to where the hosts are.

A host that is elsewhere has in its folder what is in the one here, until it has begun the window.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_container.contract.names import Layout
from estimator_container.runtime import private_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from estimator_container.runtime.loop import Loop


class WindowRequests:
    """Those of the hosts of one allocation, as its supervisor passes them on."""

    def __init__(self, loop: Loop, send: Callable[[str, str], None]) -> None:
        """`send` takes a host, and the request for it, which is empty where there is none any more."""
        from ....supervised.watch import Watch  # who only puts requests need not load it

        self._loop = loop
        self._send = send
        self._layouts: dict[str, Layout] = {}
        self._sent: dict[str, str] = {}
        self._watch = Watch()
        if self._watch.fileno() >= 0:
            loop.on_readable(self._watch.fileno(), self._look)

    def watch(self, host: str, layout: Layout) -> None:
        """Pass on what is asked of a host that is elsewhere; `layout` is that of its folder here.

        The request goes from there with the first file of the window: see `ArrivingFiles`.
        """
        self._layouts[host] = layout
        self._sent[host] = ""
        folder = Path(layout.timeline_request).parent
        self._watch.add(folder)
        self._watch.add_removals(folder)

    def close(self) -> None:
        """Pass on nothing more; the hosts are gone."""
        if self._watch.fileno() >= 0:
            self._loop.forget(self._watch.fileno())
        self._watch.close()

    def _look(self) -> None:
        self._watch.clear()
        for host, layout in self._layouts.items():
            request = ""
            with contextlib.suppress(OSError, ValueError):
                request = Path(layout.timeline_request).read_text(encoding="utf-8")
            if request != self._sent[host]:
                self._sent[host] = request
                self._send(host, request)


def put(layout: Layout, request: str) -> None:
    """Have a host find that in its folder, or nothing; one that cannot is missed by who asks."""
    with contextlib.suppress(OSError):
        if request:
            private_folder.replace(layout.timeline_request, request)
        else:
            Path(layout.timeline_request).unlink()
