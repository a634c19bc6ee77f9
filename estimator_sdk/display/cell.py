"""A job in a notebook's cell, drawn anew as long as it runs."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING, Any

from ..errors import EstimatorError
from . import page, snapshot, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from estimator_container.contract.event_decoding import AnyEvent
    from estimator_container.logs.lines import Block, Line

    from ..backends.port import StartedJob
    from .progress import Logs

SECONDS = 0.5
"""Between two drawings of a cell."""


_shown: tuple[str, int] | None = None
"""The job that was shown last, and the number of the cell that did it."""


class Cell:
    """Takes the lines and events of one job, as `Progress` does, and shows them in the cell that runs now."""

    def __init__(self, job: StartedJob, logs: Logs = "all") -> None:
        self._job = job
        self._logs = logs
        self._lock = threading.Lock()
        self._view = snapshot.new_view(job, logs)
        self._changed = threading.Event()
        self._over = threading.Event()
        self._drawer: threading.Thread | None = None
        self._handle: Any = None

    def started(self) -> None:
        """Draw the cell for the first time, and from now on whenever something was told, at most every `SECONDS`."""
        from IPython.display import display

        global _shown
        _shown = self._job.name, _number()
        self._handle = display(  # type: ignore[no-untyped-call]
            {"text/html": "", "text/plain": ""}, raw=True, display_id=True
        )
        self._draw()
        # The kernel finds the cell that a message belongs to by the context.
        context = contextvars.copy_context()
        self._drawer = threading.Thread(target=context.run, args=(self._draw_until_over,), daemon=True)
        self._drawer.start()

    def on_event(self, host: str, event: AnyEvent) -> None:
        """Take an event of a host, and draw the cell again soon."""
        with self._lock:
            self._view.on_event(host, event)
        self._changed.set()

    def on_block(self, block: Block) -> None:
        """Take the lines of a block, and draw the cell again soon."""
        with self._lock:
            for line in block.lines():
                self._view.on_line(line)
        self._changed.set()

    def on_open_line(self, line: Line) -> None:
        """Take the newest state of an unfinished line, and draw the cell again soon."""
        with self._lock:
            self._view.on_open_line(line)
        self._changed.set()

    def say(self, words: str) -> None:
        """A sentence of our own."""
        with self._lock:
            self._view.notes.append(words)
        self._changed.set()

    def again(self) -> Cell:
        """Itself, for whoever tells everything from the start once more."""
        with self._lock:
            said, self._view = self._view.notes, snapshot.new_view(self._job, self._logs)
            self._view.notes.extend(said)
        return self

    def ended(self, job: StartedJob, goodput: str = "") -> None:
        """The last drawing tells it, with a sentence on the goodput if there is one."""
        if goodput:
            self.say(goodput)

    def close(self) -> None:
        """Draw the cell for the last time."""
        self._over.set()
        self._changed.set()
        if self._drawer is not None:
            self._drawer.join()
        self._draw()

    def _draw_until_over(self) -> None:
        while not self._over.is_set():
            self._changed.wait()
            self._changed.clear()
            if not self._over.wait(SECONDS):
                self._draw()

    def _draw(self) -> None:
        with self._lock:
            try:
                now = snapshot.with_view(self._job, self._view)
            except EstimatorError:  # such as a service that does not answer now: the drawing before stays
                return
            shown = {"text/html": page.html(now), "text/plain": text.text(now)}
        self._handle.update(shown, raw=True)


def _number() -> int:
    from IPython import get_ipython

    return int(get_ipython().execution_count)


def show(job: StartedJob, goodput: Callable[[StartedJob], str]) -> None:
    """Show a job in the cell that runs now; one that still runs is followed there, and the cell ends at once.

    `goodput` gives a sentence on where the time of a job went. Does nothing for the job that `fit()` has shown in the
    same cell.
    """
    if _shown == (job.name, _number()):
        return
    cell = Cell(job)
    cell.started()
    if job.record().is_final:
        _follow(job, cell, goodput, follow=False)
    else:
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(_follow, job, cell, goodput, True), daemon=True).start()


def _follow(job: StartedJob, cell: Cell, goodput: Callable[[StartedJob], str], follow: bool) -> None:
    try:
        for block in job.blocks(follow, cell.on_event, cell.on_open_line):
            cell.on_block(block)
        cell.ended(job, goodput(job))
    except EstimatorError as error:  # such as a service that does not answer; the job itself is not concerned
        cell.say(f"it can no longer be followed: {error}")
    cell.close()
