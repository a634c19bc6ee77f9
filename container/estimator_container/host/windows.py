"""Windows of the timeline in detail: asked for by a file, passed on to the ranks by their pages.

The file, `Layout.timeline_request`, is JSON: `{"number": N, "seconds": S}`. When the window begins the host writes
`N.json` to `Layout.timelines`, with the ranks that record; each of these then writes its own (`training.window`).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

from ..runtime import private_folder
from ..training.page import set_window

if TYPE_CHECKING:
    from ..contract.names import Layout
    from ..runtime.loop import Loop, Timer

MOST_SECONDS = 3600.0
Asked = Optional["tuple[int, float]"]
"""The number of a window and its seconds; None where none is asked for."""
WithFiles = Callable[[Callable[[], Any], Callable[[Any], object]], None]
"""See `Toolkit.with_files`."""


class Windows:
    """Those of this host, one after the other."""

    def __init__(
        self, loop: Loop, with_files: WithFiles, layout: Layout, pages: str, on_begin: Callable[[], None]
    ) -> None:
        """`pages` is the folder of the pages; `on_begin` is called as a window begins."""
        self._loop = loop
        self._layout = layout
        self._pages = pages
        self._on_begin = on_begin
        self._with_files = with_files
        self._open: Timer | None = None
        self._is_looking = self._is_closed = False

    def look(self) -> None:
        """Begin the window that is asked for, if there is one and no other is open."""
        if self._open is None and not self._is_looking:
            self._is_looking = True
            self._with_files(self._take_request, self._looked)

    def _looked(self, asked: Asked) -> None:
        self._is_looking = False
        if asked is None or self._is_closed:
            return
        number, seconds = asked
        with contextlib.suppress(OSError):
            ranks = set_window(self._pages, number)
            self._open = self._loop.after(seconds, self._end)
            self._on_begin()
            begun = json.dumps({"seconds": seconds, "ranks": ranks})
            self._with_files(lambda: self._tell(number, begun), lambda _: None)

    def _tell(self, number: int, begun: str) -> None:
        with contextlib.suppress(OSError):
            private_folder.replace(os.path.join(self._layout.timelines, f"{number}.json"), begun)

    def close(self) -> None:
        """The ranks have ended, each with its window."""
        self._is_closed = True
        if self._open is not None:
            self._open.cancel()

    def _end(self) -> None:
        self._open = None
        with contextlib.suppress(OSError):
            set_window(self._pages, 0)

    def _take_request(self) -> Asked:
        """None for one that is none."""
        path = self._layout.timeline_request
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(1 << 12)
            os.unlink(path)  # whatever it says: one that stays would keep the next from being asked for
            asked = json.loads(text)
            number, seconds = int(asked["number"]), float(asked["seconds"])
            private_folder.make_below(self._layout.timelines)
        except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
            return None
        return (number, seconds) if 0 < number < 1 << 62 and 0 < seconds <= MOST_SECONDS else None
