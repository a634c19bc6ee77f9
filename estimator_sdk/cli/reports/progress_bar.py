"""How far a long work is: a bar for a person who watches, two plain lines for a log."""

from __future__ import annotations

import sys
import time

from ...values.naming import size
from ...values.standard_streams import can_redraw

_WIDTH = 24  # characters of the bar itself
_SECONDS = 0.1  # between two drawings


class Bar:
    """`with Bar("fetching", total) as bar: store.download_many(items, progress=bar)`, on standard error.

    `total` is in bytes; None where nobody knows it.
    """

    def __init__(self, what: str, total: int | None = None) -> None:
        self._what = what
        self._total = total
        self._out = sys.stderr
        self._is_watched = can_redraw(self._out)
        self._began = self._drawn = time.monotonic()
        self._done = 0

    def __enter__(self) -> Bar:
        self._write(f"{self._what} …", is_final=not self._is_watched)
        return self

    def __call__(self, done: int, objects: int) -> None:
        """So many bytes are done; any thread may say so."""
        self._done = done
        now = time.monotonic()
        if self._is_watched and now - self._drawn >= _SECONDS:
            self._drawn = now
            self._write(f"{self._what}  {self._bar()}{size(done)}, {size(done / (now - self._began))}/s")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        how = "" if kind is None else " until it failed"
        seconds = time.monotonic() - self._began
        self._write(f"{self._what}: {size(self._done)} in {seconds:.1f} s{how}", is_final=True)

    def _bar(self) -> str:
        if not self._total:
            return ""
        filled = min(_WIDTH, _WIDTH * self._done // self._total)
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {min(100, 100 * self._done // self._total)} %  "

    def _write(self, text: str, is_final: bool = False) -> None:
        end = "\n" if is_final else ""
        self._out.write(f"\r{text}\x1b[K{end}" if self._is_watched else f"{text}{end}")
        self._out.flush()
